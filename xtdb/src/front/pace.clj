(ns front.pace
  "The minimum speed of a request body."
  (:require [front.refusal :as refusal]))

(set! *warn-on-reflection* true)

(def ^:private slowest-bytes-per-second 16384)
(def ^:private patience-ns 10000000000)

(defn check!
  "Throws a 408 refusal if this number of bytes since `started` (nanoseconds) is too small."
  [^long started ^long total]
  (let [took (- (System/nanoTime) started)]
    (when (and (> took (long patience-ns))
               (< (* total 1000000000.0) (* took (double slowest-bytes-per-second))))
      (throw (refusal/refuse 408 {:error "The body comes too slowly."} {"Connection" "close"})))))

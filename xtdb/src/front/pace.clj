(ns front.pace
  "How slowly a body may come."
  (:require [front.refusal :as refusal]))

(set! *warn-on-reflection* true)

(def ^:private slowest-bytes-per-second 16384)
(def ^:private patience-ns 10000000000)

(defn check!
  "Throws a 408 refusal for a body of which so many bytes have come since `started` (nanoseconds)."
  [^long started ^long total]
  (let [took (- (System/nanoTime) started)]
    (when (and (> took (long patience-ns))
               (< (* total 1000000000.0) (* took (double slowest-bytes-per-second))))
      (throw (refusal/refuse 408 {:error "The body comes too slowly."} {"Connection" "close"})))))

(ns front.activity
  "Tracks the time since the last request, and the requests that are being read or answered."
  (:import (java.util.concurrent.atomic AtomicLong)
           (java.util.function Consumer)
           (org.eclipse.jetty.server Request)))

(set! *warn-on-reflection* true)

(defrecord Activity [^AtomicLong running ^AtomicLong last-ended])

(defn start
  "A tracker that counts from now."
  []
  (->Activity (AtomicLong.) (AtomicLong. (System/nanoTime))))

(defn track!
  "Counts this request from now until its answer is out."
  [{:keys [^AtomicLong running ^AtomicLong last-ended]} ^Request request]
  (.incrementAndGet running)
  (Request/addCompletionListener request
                                 (reify Consumer
                                   (accept [_ _failure]
                                     (.set last-ended (System/nanoTime))
                                     (.decrementAndGet running)))))

(defn idle-for?
  "Whether no request runs and none has run for that long."
  [{:keys [^AtomicLong running ^AtomicLong last-ended]} seconds]
  (and (zero? (.get running))
       (>= (- (System/nanoTime) (.get last-ended)) (* (long seconds) 1000000000))))

(def ^:private transfer-key "front.transfers")

(defn transfers!
  "Notes whether this request's body or answer is in transfer, so that the front drops a client that stops reading or writing."
  [^Request request transfers?]
  (.setAttribute request transfer-key transfers?))

(defn transfers?
  "Whether this request's body or answer is in transfer."
  [^Request request]
  (true? (.getAttribute request transfer-key)))

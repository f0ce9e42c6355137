(ns front.activity
  "How long nothing has been asked, and which requests are being read or answered just now."
  (:import (java.util.concurrent.atomic AtomicLong)
           (java.util.function Consumer)
           (org.eclipse.jetty.server Request)))

(set! *warn-on-reflection* true)

(defrecord Activity [^AtomicLong running ^AtomicLong last-ended])

(defn start
  "Counting from now."
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
  "Whether nothing runs and nothing has run for that long."
  [{:keys [^AtomicLong running ^AtomicLong last-ended]} seconds]
  (and (zero? (.get running))
       (>= (- (System/nanoTime) (.get last-ended)) (* (long seconds) 1000000000))))

(def ^:private transfer-key "front.transfers")

(defn transfers!
  "Notes whether this request's body or answer is on its way, so that a client that stops reading or writing is given up."
  [^Request request transfers?]
  (.setAttribute request transfer-key transfers?))

(defn transfers?
  "Whether it is."
  [^Request request]
  (true? (.getAttribute request transfer-key)))

(ns front.slots
  "The threads for queries: a fixed number, without a queue."
  (:refer-clojure :exclude [run!])
  (:require [front.allowance :as allowance]
            [front.deadline :as deadline]
            [front.memory :as memory]
            [front.refusal :as refusal])
  (:import (java.io Closeable)
           (java.util.concurrent ConcurrentHashMap ExecutorService Executors ScheduledExecutorService Semaphore ThreadFactory)
           (java.util.concurrent.atomic AtomicLong)))

(set! *warn-on-reflection* true)

(defrecord Slots [^Semaphore permits ^ExecutorService workers ^ScheduledExecutorService clock running limit-ms]
  Closeable
  (close [_]
    (.shutdownNow workers)
    (.shutdownNow clock)))

(defn- daemon-threads ^ThreadFactory [prefix]
  (let [n (AtomicLong.)]
    (reify ThreadFactory
      (newThread [_ task]
        (doto (Thread. task (str prefix "-" (.incrementAndGet n)))
          (.setDaemon true))))))

(defn open
  "Slots for `max-queries` concurrent queries, each stopped after `limit-ms`."
  [max-queries limit-ms]
  (let [clock (Executors/newSingleThreadScheduledExecutor (daemon-threads "front-clock"))
        running (ConcurrentHashMap/newKeySet)]
    (memory/watch! running deadline/stop!)
    (->Slots (Semaphore. max-queries)
             (Executors/newCachedThreadPool (daemon-threads "front-query"))
             clock
             running
             limit-ms)))

(defn run!
  "Calls `work` on a separate thread with a time limit of at most `asked-ms` (nil: the usual limit). If `work` throws, calls `on-error` with the exception.
  Returns at once. Throws a 503 refusal if no slot is free."
  [{:keys [^Semaphore permits ^ExecutorService workers clock running limit-ms]} asked-ms work on-error]
  (when-not (.tryAcquire permits)
    (throw (refusal/refuse 503 {:error "Too many queries are running; try again."} {"Retry-After" "1"})))
  (try
    (.execute workers
              (fn []
                (try
                  (deadline/run clock running (if asked-ms (min limit-ms asked-ms) limit-ms) #(allowance/within work))
                  (catch Throwable e
                    (on-error e))
                  (finally
                    (.release permits)))))
    (catch Throwable e
      (.release permits)
      (throw e))))

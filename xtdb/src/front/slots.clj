(ns front.slots
  "The threads that queries run on: a fixed number, none waiting."
  (:refer-clojure :exclude [run!])
  (:require [front.deadline :as deadline]
            [front.refusal :as refusal])
  (:import (java.io Closeable)
           (java.util.concurrent ExecutorService Executors ScheduledExecutorService Semaphore ThreadFactory)
           (java.util.concurrent.atomic AtomicLong)))

(set! *warn-on-reflection* true)

(defrecord Slots [^Semaphore permits ^ExecutorService workers ^ScheduledExecutorService clock limit-ms]
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
  "Room for `max-queries` at a time, each stopped after `limit-ms`."
  [max-queries limit-ms]
  (->Slots (Semaphore. max-queries)
           (Executors/newCachedThreadPool (daemon-threads "front-query"))
           (Executors/newSingleThreadScheduledExecutor (daemon-threads "front-clock"))
           limit-ms))

(defn run!
  "Calls `work` on a thread of its own with a limit of at most `asked-ms` (nil: the usual one), then `on-error` with what it threw.
  Returns at once; throws a 503 refusal when every slot is taken."
  [{:keys [^Semaphore permits ^ExecutorService workers clock limit-ms]} asked-ms work on-error]
  (when-not (.tryAcquire permits)
    (throw (refusal/refuse 503 {:error "Too many queries are running; try again."} {"Retry-After" "1"})))
  (try
    (.execute workers
              (fn []
                (try
                  (deadline/run clock (if asked-ms (min limit-ms asked-ms) limit-ms) work)
                  (catch Throwable e
                    (on-error e))
                  (finally
                    (.release permits)))))
    (catch Throwable e
      (.release permits)
      (throw e))))

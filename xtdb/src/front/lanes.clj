(ns front.lanes
  "The threads for requests, grouped into lanes by what the requests wait for. So no kind of request can take the threads that another kind needs.

  Jetty's own threads never wait: they answer `/status` and pass every other request to a lane."
  (:refer-clojure :exclude [run!])
  (:require [front.refusal :as refusal])
  (:import (java.io Closeable)
           (java.util.concurrent BlockingQueue LinkedBlockingQueue RejectedExecutionException SynchronousQueue ThreadFactory ThreadPoolExecutor TimeUnit)
           (java.util.concurrent.atomic AtomicLong)))

(set! *warn-on-reflection* true)

(def ^:private sizes
  "By lane: the maximum number of requests that run at the same time, and of those that wait."
  {:read [32 512]
   :body [32 128]
   :await [256 0]})

(defn- daemon-threads ^ThreadFactory [prefix]
  (let [n (AtomicLong.)]
    (reify ThreadFactory
      (newThread [_ task]
        (doto (Thread. ^Runnable task (str prefix "-" (.incrementAndGet n)))
          (.setDaemon true))))))

(defn- queue ^BlockingQueue [places]
  (if (zero? places) (SynchronousQueue.) (LinkedBlockingQueue. (int places))))

(defn- pool [lane [threads waiting]]
  (doto (ThreadPoolExecutor. (int threads) (int threads) 30 TimeUnit/SECONDS (queue waiting) (daemon-threads (str "front-" (name lane))))
    (.allowCoreThreadTimeOut true)))

(defrecord ^:private Lanes [pools]
  Closeable
  (close [_]
    (doseq [^ThreadPoolExecutor lane (vals pools)] (.shutdownNow lane))))

(defn open
  "All lanes, empty."
  []
  (->Lanes (into {} (map (fn [[lane size]] [lane (pool lane size)])) sizes)))

(defn run!
  "Calls `f` on a thread of this lane. Throws a 503 refusal if the lane is full."
  [{:keys [pools]} lane f]
  (try
    (.execute ^ThreadPoolExecutor (get pools lane) f)
    (catch RejectedExecutionException _
      (throw (refusal/refuse 503 {:error "Too many requests of this kind are under way; try again."} {"Retry-After" "1"})))))

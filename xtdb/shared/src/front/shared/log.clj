(ns front.shared.log
  "A log that several nodes share: checked before the node reads on, and watched while it does."
  (:require [clojure.tools.logging :as log]
            [front.shared.identity :as identity]
            [front.shared.trouble :as trouble]
            [xtdb.api :as xt]
            [xtdb.db :as db]
            [xtdb.io :as xio]
            [xtdb.status :as status]
            [xtdb.system :as sys])
  (:import (java.io Closeable)
           (java.util.concurrent CancellationException CompletableFuture Executors ScheduledExecutorService ThreadFactory TimeUnit)
           (java.util.function BiConsumer)))

(set! *warn-on-reflection* true)

(def ^:private look-ms
  "How often the log is asked how far it goes."
  2000)

(defn- look! [log seen]
  (let [now (try
              {:reachable? true, :submitted (::xt/tx-id (db/latest-submitted-tx log))}
              (catch InterruptedException e (throw e))
              (catch Throwable e
                {:reachable? false, :submitted (:submitted @seen), :said (trouble/said e)}))
        before @seen]
    (cond
      (and (:reachable? before) (not (:reachable? now))) (log/error "The log cannot be reached:" (:said now))
      (and (:reachable? now) (false? (:reachable? before))) (log/info "The log can be reached again"))
    (reset! seen now)))

(defn- watch! ^ScheduledExecutorService [log seen]
  (let [threads (reify ThreadFactory
                  (newThread [_ work] (doto (Thread. work "front-log") (.setDaemon true))))]
    (doto (Executors/newSingleThreadScheduledExecutor threads)
      (.scheduleWithFixedDelay #(look! log seen) 0 (long look-ms) TimeUnit/MILLISECONDS))))

(defn- note-end!
  "XTDB does not look at how reading the log ends: its indexer would count as alive, and stand still for good."
  [^CompletableFuture reading ended]
  (.whenComplete reading
                 (reify BiConsumer
                   (accept [_ _ e]
                     (when-not (instance? CancellationException e)
                       (log/error "The log is no longer read:" (if e (trouble/said e) "it ended"))
                       (reset! ended true)))))
  reading)

;; No record: XTDB asks every part of a record for its status, and Kafka's own waits for the broker.
(deftype ^:private SharedLog [log known seen ended ^ScheduledExecutorService watch]
  db/TxLog
  (submit-tx [_ events] (db/submit-tx log events))
  (submit-tx [_ events options] (db/submit-tx log events options))
  (open-tx-log [_ after-tx-id options] (db/open-tx-log log after-tx-id options))
  (latest-submitted-tx [_] (db/latest-submitted-tx log))
  (subscribe [_ after-tx-id f] (note-end! (db/subscribe log after-tx-id f) ended))
  status/Status
  (status-map [_]
    (let [{:keys [reachable? submitted]} @seen]
      (cond-> {:front/log (assoc known :reachable? (boolean reachable?) :submitted submitted)}
        @ended (assoc :front/log-ended? true))))
  Closeable
  (close [_]
    (.shutdownNow watch)
    (xio/try-close log)))

(defn ->tx-log
  "The log of another module, once `front.shared.identity` has nothing against it. Its status says under `:front/log` how far the log goes and
  whether it can be reached, and `:front/log-ended?` when the node no longer reads it."
  {::sys/deps {:log nil
               :document-store :xtdb/document-store
               :index-store :xtdb/index-store}
   ::sys/args {:format {:required? true, :spec ::sys/pos-int}}}
  [{:keys [log document-store index-store format]}]
  (let [log-name (try
                   (identity/check! {:log log, :documents document-store, :index index-store, :format format})
                   (catch Throwable e
                     (xio/try-close log)
                     (throw (trouble/unless-away e))))
        seen (atom {:reachable? true})]
    (->SharedLog log {:name log-name, :format format} seen (atom false) (watch! log seen))))

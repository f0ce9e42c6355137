(ns front.shared.log
  "A log that several nodes share. It is checked before the node reads it, and watched afterwards."
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
  "The interval between two requests for the log's end."
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
  "XTDB ignores how the reading of the log ends: its indexer would count as alive, but stop for good."
  [^CompletableFuture reading ended]
  (.whenComplete reading
                 (reify BiConsumer
                   (accept [_ _ e]
                     (when-not (instance? CancellationException e)
                       (log/error "The log is no longer read:" (if e (trouble/said e) "it ended"))
                       (reset! ended true)))))
  reading)

;; Not a record: XTDB asks every field of a record for its status, and the status of Kafka's log waits for the broker.
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
  "The log of another module, after the checks of `front.shared.identity`. Its status has the log's end and whether the log can be reached under
  `:front/log`, and `:front/log-ended?` if the node no longer reads it."
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

(ns front.starting
  "Whether the index has come to where the log ended when the node was started.

  Before that, queries would be answered out of a part of the data: an index that was removed or lost is made again from the log."
  (:require [xtdb.api :as xt]
            [xtdb.db :as db])
  (:import (org.rocksdb RocksDBException)))

(set! *warn-on-reflection* true)

(defn- transactions
  "How many transactions there are up to this one: their ids count from zero."
  [tx]
  (inc (::xt/tx-id tx -1)))

(defn ingester-failed?
  "Whether the indexer of a node of this status is dead, or is no longer given what the log holds: it answers out of stale data until it is started again."
  [status]
  (boolean (some status [:ingester-failed? :xtdb.tx/ingester-failed? :front/log-ended?])))

(defn- causes [^Throwable e]
  (take 20 (take-while some? (iterate #(.getCause ^Throwable %) e))))

(defn ingester-error
  "Why the indexer is dead, as one line that has nothing of a document in it; nil while it lives.
  `documents-missing` at its beginning says that the document store lacks what the log names."
  [{:keys [tx-ingester]} status]
  (when (ingester-failed? status)
    (let [found (causes (db/ingester-error tx-ingester))
          missing (some #(:missing-docs (ex-data %)) found)
          store (first (filter #(instance? RocksDBException %) found))]
      (cond
        missing (str "documents-missing: the document store lacks " (count missing) " that the log names")
        store (str "store: " (ex-message store))
        (seq found) (str "error: " (.getName (class (last found))))
        :else "log-ended: the log ends before what the index has, or is no longer read"))))

(defn since
  "A function that gives `{:indexed n, :of m}` while the index is behind the log's end of now, and nil from then on for good.
  A node whose indexer has failed does not start any further: it counts as started, and its status says what happened."
  [node]
  (let [of (transactions (xt/latest-submitted-tx node))
        started? (atom false)]
    (fn []
      (when-not @started?
        (let [indexed (transactions (xt/latest-completed-tx node))]
          (if (or (>= indexed of) (ingester-failed? (xt/status node)))
            (do (reset! started? true) nil)
            {:indexed indexed, :of of}))))))

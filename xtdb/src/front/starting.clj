(ns front.starting
  "Tracks whether the index has reached the log's end as of the node's start.

  Before that, answers would come from a part of the data, because a removed or lost index is rebuilt from the log."
  (:require [xtdb.api :as xt]
            [xtdb.db :as db])
  (:import (org.rocksdb RocksDBException)))

(set! *warn-on-reflection* true)

(defn- transactions
  "The number of transactions up to this one: their ids count from zero."
  [tx]
  (inc (::xt/tx-id tx -1)))

(defn ingester-failed?
  "Whether the indexer of a node with this status is dead, or no longer gets the log's transactions. Such a node answers from stale data until it is restarted."
  [status]
  (boolean (some status [:ingester-failed? :xtdb.tx/ingester-failed? :front/log-ended?])))

(defn- causes [^Throwable e]
  (take 20 (take-while some? (iterate #(.getCause ^Throwable %) e))))

(defn ingester-error
  "The reason why the indexer is dead, on one line without any part of a document. Nil while it lives.
  It begins with `documents-missing` if the document store lacks documents that the log names."
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
  "A function that returns `{:indexed n, :of m}` until the index reaches the log's present end, and always nil afterwards.
  A node whose indexer has failed makes no more progress: it counts as started, and its status has the reason."
  [node]
  (let [of (transactions (xt/latest-submitted-tx node))
        started? (atom false)]
    (fn []
      (when-not @started?
        (let [indexed (transactions (xt/latest-completed-tx node))]
          (if (or (>= indexed of) (ingester-failed? (xt/status node)))
            (do (reset! started? true) nil)
            {:indexed indexed, :of of}))))))

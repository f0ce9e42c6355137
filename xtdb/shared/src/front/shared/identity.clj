(ns front.shared.identity
  "Identifies a log. The log's first transaction holds a document with a unique name and the number of the data format."
  (:require [front.shared.trouble :as trouble]
            [xtdb.api :as xt]
            [xtdb.codec :as c]
            [xtdb.db :as db]
            [xtdb.io :as xio]
            [xtdb.tx.conform :as conform]
            [xtdb.tx.event :as event])
  (:import (xtdb.api ICursor)))

(set! *warn-on-reflection* true)

(def ^:private read-limit-ms
  "The time limit for reading a transaction that the log contains."
  30000)

(defn- write!
  "Writes the document of a log. If several nodes do so at the same time, the first document in the log counts."
  [log documents format]
  (let [document {:xt/id :front/log, :front/log (str (random-uuid)), :front/format format}
        operations (mapv conform/conform-tx-op [[::xt/match :front/log nil] [::xt/put document]])]
    (db/submit-docs documents (xio/map-vals c/xt->crux (into {} (mapcat :docs) operations)))
    @(db/submit-tx log (mapv conform/->tx-event operations) {})))

(defn- transaction-after
  "The log's first transaction after this id, or the first of all without an id. It is known to exist."
  [log tx-id]
  (let [until (+ (System/nanoTime) (* 1000000 (long read-limit-ms)))]
    (loop []
      (let [found (with-open [^ICursor cursor (db/open-tx-log log tx-id {})]
                    (first (iterator-seq cursor)))]
        (cond
          found found
          (< until (System/nanoTime)) (throw (trouble/trouble :log-unreachable "A transaction of the log could not be read in time"))
          :else (recur))))))

(defn- document-of [documents transaction]
  (let [hashes (set (conform/tx-events->doc-hashes (::event/tx-events transaction)))
        found (db/fetch-docs documents hashes)]
    (when (< (count found) (count hashes))
      (throw (trouble/trouble :log-mismatch (str "The documents of the log are not in this database: name the one that the log was begun with"))))
    (some #(when (:front/log %) %) (vals found))))

(defn- check-format! [{:front/keys [format]} wanted]
  (cond
    (> (long format) (long wanted))
    (throw (trouble/trouble :newer-data (str "The log has format " format "; this version knows formats up to " wanted)))
    (< (long format) (long wanted))
    (throw (trouble/trouble :older-data (str "The log has format " format "; this version writes format " wanted
                                             ", which nodes of the earlier version could not read")))))

(defn- check-empty!
  "A new log has no index yet. If there is an index, the log was lost or is a different one."
  [index]
  (when (db/latest-completed-tx index)
    (throw (trouble/trouble :log-mismatch "The log is empty, and the index in this data folder was made from one that is not"))))

(defn- check-index! [index name]
  (let [known (db/read-index-meta index :front/log nil)]
    (cond
      (= known name) nil
      (or known (db/latest-completed-tx index))
      (throw (trouble/trouble :log-mismatch (str "The index in this data folder was made from another log"
                                                 (when known (str " (" known "; this one is " name ")")))))
      :else (db/store-index-meta index :front/log name))))

(defn- times-of
  "The times that an index may have for a transaction: the log's time, and the time that the submitter asked for.
  If XTDB aborts a transaction because of the submitter's time, the index has the log's time."
  [{::xt/keys [tx-time submit-tx-opts]}]
  (set (remove nil? [tx-time (::xt/tx-time submit-tx-opts)])))

(defn- check-tip!
  "A log that was reset, for example to a backup, gives the ids of its lost transactions to new ones. An index with the lost transactions would mistake the
  new ones for them."
  [log index]
  (when-let [{::xt/keys [tx-id tx-time]} (db/latest-completed-tx index)]
    (let [end (::xt/tx-id (db/latest-submitted-tx log) -1)
          found (when (<= tx-id end)
                  (transaction-after log (when (pos? tx-id) (dec tx-id))))]
      (when-not (and (= tx-id (::xt/tx-id found)) (contains? (times-of found) tx-time))
        (throw (trouble/trouble :log-mismatch (str "The log was set back: the index in this data folder has seen a transaction " tx-id " that is not in it"
                                                   (when (< end tx-id) (str ", for it ends at " end))
                                                   ". Remove the folder `index`, or restore a checkpoint that was made from what the log has now")))))))

(defn check!
  "Checks a log: this program began it, it has this format and its documents, and its present content is what the index was made from. Begins an empty log.
  Returns the log's name. Throws exceptions of `front.shared.trouble`."
  [{:keys [log documents index format]}]
  (when-not (db/latest-submitted-tx log)
    (check-empty! index)
    (write! log documents format))
  (let [document (or (document-of documents (transaction-after log nil))
                     (throw (trouble/trouble :log-mismatch "The log was begun by another program")))]
    (check-format! document format)
    (check-index! index (:front/log document))
    (check-tip! log index)
    (:front/log document)))

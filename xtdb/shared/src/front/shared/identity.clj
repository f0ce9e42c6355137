(ns front.shared.identity
  "Which log this is: its first transaction holds a document with a name of its own and the number of the format of what is in the log."
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
  "How long a transaction that is in the log may take to be read."
  30000)

(defn- write!
  "Writes the document of a log. Of several nodes that do so at once the first one's counts: the log has an order."
  [log documents format]
  (let [document {:xt/id :front/log, :front/log (str (random-uuid)), :front/format format}
        operations (mapv conform/conform-tx-op [[::xt/match :front/log nil] [::xt/put document]])]
    (db/submit-docs documents (xio/map-vals c/xt->crux (into {} (mapcat :docs) operations)))
    @(db/submit-tx log (mapv conform/->tx-event operations) {})))

(defn- transaction-after
  "The first transaction of a log after this id, or of all, which is known to be there."
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
  "A log that is to be begun has no index yet: where there is one, the log was lost, or is another one."
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
  "The times that an index may have of a transaction: the log's own, also where XTDB aborted it for the time that whoever submitted it asked for."
  [{::xt/keys [tx-time submit-tx-opts]}]
  (set (remove nil? [tx-time (::xt/tx-time submit-tx-opts)])))

(defn- check-tip!
  "A log that was set back, to a backup for instance, gives the ids of what it has lost to other transactions: an index that has seen the lost ones would take
  those for the ones that it knows."
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
  "Makes sure that a log is one of ours, of this format, with its documents, and the one that the index was made from, as it is now; begins an empty one.
  Gives the log's name. Throws what `front.shared.trouble` makes."
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

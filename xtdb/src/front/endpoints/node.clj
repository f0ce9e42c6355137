(ns front.endpoints.node
  "Endpoints for the node itself: its status, its basis, its attributes, and its index as files."
  (:require [front.endpoints.basis :as basis]
            [front.refusal :as refusal]
            [front.starting :as starting]
            [xtdb.api :as xt]
            [xtdb.checkpoint :as cp]
            [xtdb.codec :as c])
  (:import (java.nio.file Path)))

(set! *warn-on-reflection* true)

(defn- with-health
  "XTDB's status of a node, with two additions: whether the log is no longer read, and the progress of a shared log's index."
  [{:keys [node store-failed]}]
  (let [status (xt/status node)]
    (cond-> status
      (starting/ingester-failed? status) (assoc :ingester-failed? true, :front/ingester-error (starting/ingester-error node status))
      (:front/log status) (assoc-in [:front/log :completed] (::xt/tx-id (xt/latest-completed-tx node)))
      (realized? store-failed) (assoc :front/store-failed? true))))

(defn status
  "GET /status: 500 only for an inactive Kafka, as in XTDB's HTTP API; 503 with the progress while the index is behind the log.
  Reports whether the store refused a write, and the ends of a shared log and its index."
  [{:keys [starting] :as context} _]
  (let [status (with-health context)
        behind (starting)]
    (cond
      behind {:status 503, :headers {"Retry-After" "1"}, :body (assoc status :front/starting behind)}
      (get status :xtdb.zk/zk-active? true) {:status 200, :body status}
      :else {:status 500, :body status})))

(defn db
  "GET /db: the basis that the parameters resolve to."
  [context {:keys [params]}]
  (let [db (basis/db context params)]
    {:status 200, :body (merge {::xt/valid-time (xt/valid-time db)} (xt/db-basis db))}))

(defn attribute-stats
  "GET /attribute-stats: the approximate number of documents with each attribute."
  [{:keys [node]} _]
  {:status 200, :body (xt/attribute-stats node)})

(defn stop
  "POST /stop: ends the process as SIGTERM does, for systems without that signal. 403 without --stop-on-request."
  [{:keys [stop]} _]
  (when-not stop
    (throw (refusal/refuse 403 "forbidden: this node is stopped by a signal")))
  (deliver stop :request)
  {:status 202, :body {:front/stopping true}})

(defn checkpoint
  "POST /checkpoint: copies the index, as of a transaction or later, into the folder `checkpoint` of --data and replaces the folder's content. Most of the
  files are hard links to the index's files, which are never written again. 400 if the index is in memory."
  [{:keys [node ^Path data]} _]
  (let [store (get-in node [:index-store :kv-store])]
    (when-not (and data (satisfies? cp/CheckpointSource store))
      (throw (refusal/refuse 400 {:error "The index of this node does not lie in files."})))
    (let [{:keys [tx]} (locking store
                         (cp/save-checkpoint store (.toFile (.resolve data "checkpoint"))))]
      {:status 200
       :body {::xt/tx-id (::xt/tx-id tx)
              ::xt/tx-time (::xt/tx-time tx)
              :front/log (get-in (xt/status node) [:front/log :name])
              :front/index-version c/index-version}})))

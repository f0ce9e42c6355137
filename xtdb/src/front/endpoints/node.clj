(ns front.endpoints.node
  "The node itself: its status, its basis, its attributes."
  (:require [front.endpoints.basis :as basis]
            [xtdb.api :as xt]))

(defn status
  "GET /status: 500 only where XTDB's wire has it, with an inactive Kafka; 503 while the index is behind the log, with how far it has come.
  A store that has refused a write is named."
  [{:keys [node starting store-failed]} _]
  (let [status (cond-> (xt/status node)
                 (realized? store-failed) (assoc :front/store-failed? true))
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
  "GET /attribute-stats: how many documents have each attribute, approximately."
  [{:keys [node]} _]
  {:status 200, :body (xt/attribute-stats node)})

(ns front.endpoints.entity
  "Endpoints for one entity: its document, its history, and the transaction that wrote it."
  (:require [front.endpoints.basis :as basis]
            [front.endpoints.links :as links]
            [front.refusal :as refusal]
            [front.rows :as rows]
            [xtdb.api :as xt]))

(def ^:private id-params {:eid :id, :eid-edn :id-edn, :eid-json :id-json})

(def entity-tx-params (merge basis/params id-params))

(def entity-params
  (merge basis/params id-params
         {:history :truth
          :sort-order :sort-order
          :with-docs :truth
          :with-corrections :truth
          :start-valid-time :time, :start-tx-time :time, :start-tx-id :integer
          :end-valid-time :time, :end-tx-time :time, :end-tx-id :integer
          :link-entities? :truth}))

(defn- entity-id [{:keys [eid-edn eid-json eid]}]
  (let [given (first (filter some? [eid-edn eid-json eid]))]
    (when (nil? given)
      (throw (refusal/illegal-argument :missing-eid "Missing eid")))
    given))

(defn- bound [tx-time tx-id]
  (not-empty (cond-> {}
               tx-time (assoc ::xt/tx-time tx-time)
               tx-id (assoc ::xt/tx-id tx-id))))

(defn- history [db eid {:keys [sort-order with-docs with-corrections] :as params}]
  (when-not sort-order
    (throw (refusal/illegal-argument :missing-sort-order "History needs sort-order=asc or sort-order=desc")))
  (rows/from-cursor
   (xt/open-entity-history db eid sort-order
                           {:with-docs? (boolean with-docs)
                            :with-corrections? (boolean with-corrections)
                            :start-valid-time (:start-valid-time params)
                            :start-tx (bound (:start-tx-time params) (:start-tx-id params))
                            :end-valid-time (:end-valid-time params)
                            :end-tx (bound (:end-tx-time params) (:end-tx-id params))})
   identity nil))

(defn- document [db eid {:keys [link-entities?]}]
  (let [found (xt/entity db eid)]
    (cond
      (empty? found) {:status 404, :body {:error (str eid " entity not found")}}
      link-entities? {:status 200, :body (links/link-document db found)}
      :else {:status 200, :body found})))

(defn entity
  "GET /entity: the document, or all versions with `history=true`."
  [context {:keys [params]}]
  (let [eid (entity-id params)
        db (basis/db context params)]
    (if (:history params)
      {:status 200, :body (history db eid params)}
      (document db eid params))))

(defn entity-tx
  "GET /entity-tx: the transaction that wrote the document."
  [context {:keys [params]}]
  (let [eid (entity-id params)]
    (if-let [found (xt/entity-tx (basis/db context params) eid)]
      {:status 200, :body found, :last-modified (::xt/tx-time found)}
      {:status 404, :body {:error (str eid " entity-tx not found")}})))

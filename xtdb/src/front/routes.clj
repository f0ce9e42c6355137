(ns front.routes
  "The table of routes: from path and method to endpoint, with the accepted formats and the form of the JSON."
  (:require [front.edn :as edn]
            [front.endpoints.basis :as basis]
            [front.endpoints.entity :as entity]
            [front.endpoints.metrics :as metrics]
            [front.endpoints.node :as node]
            [front.endpoints.query :as query]
            [front.endpoints.transactions :as transactions]
            [front.format :as format]
            [front.json :as json]
            [xtdb.api :as xt]))

(def ^:private await-params {:await-tx-id :integer, :await-tx-time :time, :await-tx-timeout :integer})

(defn- read-route
  "A GET route; `more` overrides the usual formats and JSON, and names the `:lane` of a request that is not simply read."
  [run params & {:as more}]
  (merge {:run run, :params params, :formats format/common-formats, :json json/camel-case-keys, :json-item identity} more))

(defn- awaiting [run params & {:as more}]
  (merge (read-route run (merge params await-params)) more))

(defn- ops-by-name [tx]
  (letfn [(by-name [ops] (mapv #(update (vec %) 0 name) ops))]
    (json/camel-case-keys
     (cond-> tx
       (contains? tx ::xt/tx-ops) (update ::xt/tx-ops by-name)
       (contains? tx ::xt/tx-events) (update ::xt/tx-events by-name)))))

(defn- query-states [states]
  (if (map? states)
    (json/camel-case-keys states)
    (map #(json/camel-case-keys (update (into {} %) :query edn/text)) states)))

(def ^:private query-get
  (awaiting query/query query/params :formats format/query-formats :json identity))

(def ^:private query-post
  (assoc query-get :decodes ["application/edn" "application/transit+json"]))

(defn- only-as [media-type]
  {:get (assoc query-get :always media-type)
   :post (assoc query-post :always media-type)})

(def ^:private table
  {"/status" {:get (read-route node/status {} :lane :here :always? true)}
   "/stop" {:post (read-route node/stop {} :lane :here :always? true)}
   "/checkpoint" {:post (read-route node/checkpoint {} :writes? true)}
   "/db" {:get (awaiting node/db basis/params)}
   "/entity" {:get (awaiting entity/entity entity/entity-params :json identity :json-item json/camel-case-keys)}
   "/entity-tx" {:get (awaiting entity/entity-tx entity/entity-tx-params)}
   "/query" {:get query-get, :post query-post}
   "/query.csv" (only-as "text/csv")
   "/query.tsv" (only-as "text/tsv")
   "/submit-tx" {:post (read-route transactions/submit {} :decodes format/common-formats :writes? true)}
   "/tx-committed" {:get (awaiting transactions/committed {:tx-id :integer} :required [:tx-id])}
   "/await-tx" {:get (read-route transactions/await-tx {:tx-id :integer, :timeout :integer} :required [:tx-id] :lane :await)}
   "/await-tx-time" {:get (read-route transactions/await-tx-time {:tx-time :time, :timeout :integer} :required [:tx-time] :lane :await)}
   "/sync" {:get (read-route transactions/sync {:tx-time :time, :timeout :integer} :lane :await)}
   "/tx-log" {:get (awaiting transactions/log {:after-tx-id :integer, :with-ops? :truth} :json-item ops-by-name)}
   "/latest-completed-tx" {:get (awaiting transactions/latest-completed {})}
   "/latest-submitted-tx" {:get (read-route transactions/latest-submitted {})}
   "/attribute-stats" {:get (read-route node/attribute-stats {} :json identity)}
   "/active-queries" {:get (read-route query/active {} :json query-states)}
   "/recent-queries" {:get (read-route query/recent {} :json query-states)}
   "/slowest-queries" {:get (read-route query/slowest {} :json query-states)}})

(def ^:private by-path
  (assoc (update-keys table #(str "/_xtdb" %))
         ;; Prometheus's default path. The answer is always text, whatever the request accepts.
         "/metrics" {:get (read-route metrics/metrics {} :lane :here :always? true :always "application/edn")}))

(defn find-route
  "The route, or :unknown-path, or :wrong-method."
  [path method]
  (if-let [methods (get by-path path)]
    (get methods method :wrong-method)
    :unknown-path))

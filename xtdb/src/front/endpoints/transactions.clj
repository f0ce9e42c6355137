(ns front.endpoints.transactions
  "Endpoints that submit, await and list transactions."
  (:refer-clojure :exclude [sync])
  (:require [front.awaiting :as awaiting]
            [front.endpoints.json-ops :as json-ops]
            [front.refusal :as refusal]
            [front.rows :as rows]
            [front.shape :as shape]
            [front.start-failure :as start-failure]
            [front.tx-guard :as tx-guard]
            [xtdb.api :as xt]))

(defn- ops-of [{:keys [tx-ops] :as body} body-type]
  (when-not (vector? tx-ops)
    (throw (refusal/coercion :body-params "vector?" (shape/short-text body)
                             [{:path [:tx-ops], :in [:tx-ops], :via [], :pred "vector?", :val (shape/short-text tx-ops)}])))
  (if (= "application/json" body-type)
    (mapv json-ops/from-json tx-ops)
    tx-ops))

(defn- submit!
  "Submits, and notes if the store refuses: after a failed write, RocksDB accepts no other until it is reopened."
  [{:keys [node store-failed]} tx-ops options]
  (try
    (xt/submit-tx node tx-ops options)
    (catch Throwable e
      (when (start-failure/rocksdb? e)
        (deliver store-failed true))
      (throw e))))

(defn submit
  "POST /submit-tx: 202 with the receipt once the transaction is in the log. That is not a commit."
  [context {:keys [body body-type]}]
  (let [tx-ops (ops-of body body-type)
        options (::xt/submit-tx-opts body)]
    (tx-guard/check! tx-ops options)
    (let [receipt (submit! context tx-ops options)]
      {:status 202, :body receipt, :last-modified (::xt/tx-time receipt)})))

(defn committed
  "GET /tx-committed: whether an indexed transaction took effect; 400 out-of-sync before it is indexed."
  [{:keys [node]} {{:keys [tx-id]} :params}]
  {:status 200, :body {:tx-committed? (xt/tx-committed? node {::xt/tx-id tx-id})}})

(defn await-tx
  "GET /await-tx: the latest transaction at or past this one."
  [{:keys [node] :as context} {{:keys [tx-id timeout]} :params}]
  (let [tx (xt/await-tx node {::xt/tx-id tx-id} (awaiting/limit context timeout))]
    {:status 200, :body tx, :last-modified (::xt/tx-time tx)}))

(defn await-tx-time
  "GET /await-tx-time: the time of a transaction at or past this time."
  [{:keys [node] :as context} {{:keys [tx-time timeout]} :params}]
  (let [reached (xt/await-tx-time node tx-time (awaiting/limit context timeout))]
    {:status 200, :body {::xt/tx-time reached}, :last-modified reached}))

(defn sync
  "GET /sync: waits until everything submitted so far is indexed; with the deprecated `tx-time`, until that time."
  [{:keys [node] :as context} {{:keys [tx-time timeout] :as params} :params}]
  (if tx-time
    (await-tx-time context {:params params})
    (let [reached (xt/sync node (awaiting/limit context timeout))]
      {:status 200, :body {::xt/tx-time reached}, :last-modified reached})))

(defn log
  "GET /tx-log: committed transactions in order, item by item."
  [{:keys [node]} {{:keys [after-tx-id with-ops?]} :params}]
  {:status 200
   :body (rows/from-cursor (xt/open-tx-log node after-tx-id (boolean with-ops?)) identity nil)
   :last-modified (::xt/tx-time (xt/latest-completed-tx node))})

(defn latest-completed
  "GET /latest-completed-tx."
  [{:keys [node]} _]
  (if-let [tx (xt/latest-completed-tx node)]
    {:status 200, :body tx}
    {:status 404, :body {:error "No latest-completed-tx found."}}))

(defn latest-submitted
  "GET /latest-submitted-tx."
  [{:keys [node]} _]
  (if-let [tx (xt/latest-submitted-tx node)]
    {:status 200, :body tx}
    {:status 404, :body {:error "No latest-submitted-tx found."}}))

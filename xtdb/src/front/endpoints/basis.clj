(ns front.endpoints.basis
  "The database value that a request's basis parameters name."
  (:require [xtdb.api :as xt]))

(def params {:valid-time :time, :tx-time :time, :tx-id :integer})

(defn db
  "The database as of the requested valid time and transaction. Throws when the node has not indexed that far."
  [{:keys [node]} {:keys [valid-time tx-time tx-id]}]
  (xt/db node {::xt/valid-time valid-time, ::xt/tx-time tx-time, ::xt/tx-id tx-id}))

(ns front.tx-guard
  "Checks transactions: they may only put, delete, match, evict and cas plain documents.

  Transaction functions would run code in every node, now and at each rebuild. Documents with XTDB's own keys stop the indexer
  for good or vanish from reads. Both are refused before anything reaches the log."
  (:require [front.collisions :as collisions]
            [front.refusal :as refusal]
            [front.shape :as shape]
            [front.size :as size]
            [xtdb.api :as xt])
  (:import (java.util Collection Map)))

(def ^:private document-arguments
  "By operation: which of its arguments are documents."
  {::xt/put [1]
   ::xt/match [2]
   ::xt/cas [1 2]
   ::xt/delete []
   ::xt/evict []})

(def ^:private reserved-namespaces #{"crux.db" "crux.db.fn" "xtdb.api"})

(defn- reserved-key? [k]
  (and (keyword? k)
       (or (= :xt/fn k)
           (contains? reserved-namespaces (namespace k)))))

(defn- check-document! [document]
  (when-let [k (and (instance? Map document) (some #(when (reserved-key? %) %) (keys document)))]
    (throw (refusal/illegal-argument :reserved-key
                                     (str "invalid doc: the key " k " is reserved")
                                     {:key k, :xt/id (str (get document :xt/id))})))
  (when (> (size/measure document size/largest-value) size/largest-value)
    (throw (refusal/refuse 413 {:error (str "A document of more than " size/largest-value " characters")})))
  (when (instance? Map document)
    ;; The indexer makes a Java map from the parts of each value.
    (doseq [part (vals document)
            :when (instance? Collection part)]
      (collisions/check! part collisions/java-hash))))

(defn- check-op! [op]
  (when-not (vector? op)
    (throw (refusal/illegal-argument :invalid-tx-op "invalid tx-op: tx-op must be a vector" {:op (shape/short-text op)})))
  (let [kind (first op)
        arguments (get document-arguments kind)]
    (cond
      (= ::xt/fn kind) (throw (refusal/illegal-argument :tx-fn-not-allowed "Transaction functions are not allowed"))
      (nil? arguments) (throw (refusal/illegal-argument :invalid-tx-op
                                                        (str "invalid tx-op: Invalid tx op: " (shape/short-text kind))
                                                        {:op (shape/short-text op)}))
      :else (doseq [at arguments] (check-document! (nth op at nil))))
    (shape/check! op :invalid-tx-op)))

(def ^:private known-options #{::xt/tx-time})

(defn check!
  "Throws a 400 refusal unless every operation and option may be submitted."
  [tx-ops options]
  (run! check-op! tx-ops)
  (when-not (or (nil? options) (and (map? options) (every? known-options (keys options))))
    (throw (refusal/illegal-argument :invalid-submit-tx-opts "Invalid opts passed to submit-tx"))))

(ns front.query-guard
  "What may be asked: queries made of known parts that call only functions of our own list.

  Every place where XTDB would turn a symbol into a function is walked before XTDB sees the query, and what is not understood is
  refused: XTDB resolves a qualified symbol, and so loads its namespace, before it consults its own list."
  (:require [front.edn :as edn]
            [front.functions :as functions]
            [front.refusal :as refusal]
            [front.rules-cost :as rules-cost]
            [front.shape :as shape]))

(def ^:private known-keys
  #{:find :keys :syms :strs :in :where :args :rules :offset :limit :order-by :timeout :batch-size :full-results?})

(def ^:private most-nodes 20000)
(def ^:private most-clauses 500)
(def ^:private deepest 64)

(defn- refuse-shape [what part]
  (throw (refusal/illegal-argument :query-spec-failed
                                   (str "Query didn't match expected structure: " what)
                                   {:part (shape/short-text part)})))

(defn- refuse-function [sym]
  (throw (refusal/illegal-argument :fn-not-allowed
                                   (str "Query used a function that was not in the allowlist: " (shape/short-text sym)))))

(defn- check-function! [sym built-ins]
  (when-not (or (contains? built-ins sym) (functions/callable? sym))
    (refuse-function sym)))

(defn- check-depth! [depth part]
  (when (> depth deepest)
    (refuse-shape "nested too deeply" part)))

;; Forms of :find and :order-by

(defn- check-form! [form depth]
  (check-depth! depth form)
  (cond
    (seq? form) (let [[head & more] form]
                  (check-function! head functions/find-built-ins)
                  (when-not (= 'pull head)
                    (doseq [part more] (check-form! part (inc depth)))))
    (map? form) (doseq [[k v] form]
                  (check-form! k (inc depth))
                  (check-form! v (inc depth)))
    (coll? form) (doseq [part form] (check-form! part (inc depth)))))

;; Clauses of :where and :rules

(declare check-clauses! check-query!)

(defn- check-sub-query! [arg depth]
  (check-query! (if (and (seq? arg) (= 'quote (first arg))) (second arg) arg)
                (inc depth)))

(defn- check-predicate! [[head & more] depth]
  (check-function! head functions/clause-built-ins)
  (when (= 'q head)
    (check-sub-query! (first more) depth)))

(defn- check-vector-clause! [[head :as clause] depth]
  (cond
    (seq? head) (check-predicate! head depth)
    (some seq? clause) (refuse-shape "a list in a triple" clause)))

(defn- check-list-clause! [[head & more :as clause] depth]
  (cond
    (contains? '#{not or and} head) (check-clauses! more depth)
    (contains? '#{not-join or-join} head) (check-clauses! (rest more) depth)
    (not (simple-symbol? head)) (refuse-shape "a rule without a name" clause)))

(defn- check-clause! [clause depth]
  (check-depth! depth clause)
  (cond
    (vector? clause) (check-vector-clause! clause depth)
    (seq? clause) (check-list-clause! clause depth)
    :else (refuse-shape "a clause is a vector or a list" clause)))

(defn- check-clauses! [clauses depth]
  (doseq [clause clauses] (check-clause! clause (inc depth))))

(defn- check-rule! [rule depth]
  (if (and (vector? rule) (seq? (first rule)) (simple-symbol? (ffirst rule)))
    (check-clauses! (rest rule) depth)
    (refuse-shape "a rule is a vector that begins with its head" rule)))

;; Whole queries

(defn- vector-query->map [q]
  (into {}
        (for [[[k] values] (partition-all 2 (partition-by keyword? q))
              :let [alone (first values)]]
          [k (if (and (= 1 (count values)) (or (nat-int? alone) (boolean? alone)))
               alone
               (vec values))])))

(defn as-map
  "A query given as a map, a vector or EDN text, as a map. Throws a 400 refusal for anything else."
  [q]
  (cond
    (map? q) q
    (vector? q) (vector-query->map q)
    (string? q) (recur (try
                         (edn/read-one q ::absent)
                         (catch Exception _ (refuse-shape "unreadable text" q))))
    :else (refuse-shape "not a query" q)))

(defn- check-parts! [{:keys [find where rules order-by]} depth]
  (doseq [[part v] {":find" find, ":where" where, ":rules" rules, ":order-by" order-by}
          :when (not (or (nil? v) (sequential? v)))]
    (refuse-shape (str part " is a vector") v))
  (check-form! (vec find) depth)
  (check-form! (vec order-by) depth)
  (check-clauses! where depth)
  (doseq [rule rules] (check-rule! rule depth))
  (when (> (rules-cost/cost where rules most-clauses) most-clauses)
    (refuse-shape (str "more than " most-clauses " clauses once rules are written out") (count where))))

(defn- check-query! [q depth]
  (check-depth! depth q)
  (let [q (as-map q)]
    (when-let [unknown (some #(when-not (contains? known-keys %) %) (keys q))]
      (refuse-shape "an unknown part" unknown))
    (check-parts! q depth)))

(defn checked
  "The query as a map that may be run. Throws a 400 refusal that says what is not allowed."
  [q]
  (let [q (as-map q)]
    (shape/check! (dissoc q :args) :query-spec-failed)
    (when (> (shape/node-count (dissoc q :args) most-nodes) most-nodes)
      (refuse-shape "too large; pass values as :in-args" (keys q)))
    (check-query! q 0)
    q))

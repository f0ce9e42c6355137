(ns front.query-guard
  "Checks queries: they may consist only of known parts and call only functions of the front's own list.

  The check visits every place where XTDB would turn a symbol into a function, before XTDB sees the query. Unknown parts are
  refused: XTDB resolves a qualified symbol, and so loads its namespace, before it consults its own list."
  (:require [front.edn :as edn]
            [front.functions :as functions]
            [front.growth :as growth]
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

;; The context of a walk is its depth and the rules in force: a sub-query sees the rules of the queries around it.

(defn- deeper [context part]
  (if (< (:depth context) deepest)
    (update context :depth inc)
    (refuse-shape "nested too deeply" part)))

;; Forms of :find and :order-by

(defn- check-form! [form context]
  (when (coll? form)
    (let [inside (deeper context form)]
      (cond
        (seq? form) (let [[head & more] form]
                      (check-function! head functions/find-built-ins)
                      (when-not (= 'pull head)
                        (doseq [part more] (check-form! part inside))))
        (map? form) (doseq [[k v] form]
                      (check-form! k inside)
                      (check-form! v inside))
        :else (doseq [part form] (check-form! part inside))))))

;; Clauses of :where and :rules

(declare check-clauses! check-query!)

(defn- check-predicate! [[head sub-query] context]
  (check-function! head functions/clause-built-ins)
  (when (= 'q head)
    (check-query! (if (and (seq? sub-query) (= 'quote (first sub-query))) (second sub-query) sub-query)
                  context)))

(defn- check-vector-clause! [[head :as clause] context]
  (cond
    (seq? head) (check-predicate! head context)
    (some seq? clause) (refuse-shape "a list in a triple" clause)))

(defn- check-list-clause! [[head & more :as clause] context]
  (cond
    (contains? '#{not or and} head) (check-clauses! more context)
    (contains? '#{not-join or-join} head) (check-clauses! (rest more) context)
    (not (simple-symbol? head)) (refuse-shape "a rule without a name" clause)))

(defn- check-clause! [clause context]
  (cond
    (vector? clause) (check-vector-clause! clause context)
    (seq? clause) (check-list-clause! clause context)
    :else (refuse-shape "a clause is a vector or a list" clause)))

(defn- check-clauses! [clauses context]
  (let [inside (deeper context clauses)]
    (doseq [clause clauses] (check-clause! clause inside))))

(defn- check-rule! [rule context]
  (if (and (vector? rule) (seq? (first rule)) (simple-symbol? (ffirst rule)))
    (check-clauses! (rest rule) context)
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

(defn- check-parts! [{:keys [find where rules order-by]} outer]
  (doseq [[part v] {":find" find, ":where" where, ":rules" rules, ":order-by" order-by}
          :when (not (or (nil? v) (sequential? v)))]
    (refuse-shape (str part " is a vector") v))
  (let [context (update outer :rules into rules)]
    (check-form! (vec find) context)
    (check-form! (vec order-by) context)
    (doseq [rule rules] (check-rule! rule context))
    (check-clauses! where context)
    (when (> (rules-cost/cost where (:rules context) most-clauses) most-clauses)
      (refuse-shape (str "more than " most-clauses " clauses once rules are written out") (count where)))
    (when-let [doubling (growth/doubling-rule (:rules context))]
      (refuse-shape "a rule that calls itself and puts together values that came through it" doubling))))

(defn- check-query! [q context]
  (let [q (as-map q)]
    (when-let [unknown (some #(when-not (contains? known-keys %) %) (keys q))]
      (refuse-shape "an unknown part" unknown))
    (check-parts! q (deeper context q))))

(defn checked
  "The query as a map that may be run. Throws a 400 refusal that names the part that is not allowed."
  [q]
  (let [q (as-map q)]
    (shape/check! (dissoc q :args) :query-spec-failed)
    (when (> (shape/node-count (dissoc q :args) most-nodes) most-nodes)
      (refuse-shape "too large; pass values as :in-args" (keys q)))
    (check-query! q {:depth 0, :rules []})
    (when (> (growth/weight q {:rules {}, :as-map as-map}) growth/heaviest)
      (refuse-shape (str "a value made out of more than " growth/heaviest " others") (:where q)))
    q))

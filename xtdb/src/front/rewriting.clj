(ns front.rewriting
  "Prepares a checked query for XTDB: replaces functions and aggregates that may make or hold large values by versions that count."
  (:require [clojure.walk :as walk]
            [front.aggregates :as aggregates]
            [front.bounded]
            [front.functions :as functions]
            [front.passing]))

(def ^:private kept "front.bounded")
(def ^:private passing "front.passing")

(defn- in-place-of [sym place]
  (if-let [plain (functions/made-by sym)] (symbol place (name plain)) sym))

;; Find expressions

(defn- aggregate?
  "Whether XTDB treats this list as an aggregate: its last part is aggregated, the parts before it are literals."
  [[head & more]]
  (and (contains? functions/find-built-ins head)
       (seq more)
       (not-any? #(or (symbol? %) (coll? %)) (butlast more))))

(defn- aggregate-head [head more]
  (if (and (contains? aggregates/holding head) (or (not ('#{min max} head)) (next more)))
    (aggregates/counted head)
    head))

(defn- form [place part]
  (let [inside #(form place %)]
    (cond
      (seq? part) (let [[head & more] part]
                    (cond
                      (= 'pull head) part
                      (aggregate? part) (apply list (aggregate-head head more) (map inside more))
                      :else (apply list (in-place-of head place) (map inside more))))
      (map? part) (into {} (map (fn [[k v]] [(inside k) (inside v)])) part)
      (vector? part) (mapv inside part)
      (set? part) (into #{} (map inside) part)
      :else part)))

(defn- aggregated? [part]
  (cond
    (seq? part) (and (not= 'pull (first part)) (or (aggregate? part) (some aggregated? (rest part))))
    (coll? part) (some aggregated? (if (map? part) (mapcat identity part) part))))

;; Clauses

(declare clauses counted-query)

(defn- call [as-map [head & arguments]]
  (if (= 'q head)
    (let [[sub-query & more] arguments
          unquoted (if (and (seq? sub-query) (= 'quote (first sub-query))) (second sub-query) sub-query)]
      (apply list 'q (counted-query as-map unquoted true) more))
    (apply list (in-place-of head kept) arguments)))

(defn- clause [as-map [head & more :as given]]
  (cond
    (vector? given) (if (seq? head) (into [(call as-map head)] more) given)
    ('#{not or and} head) (apply list head (clauses as-map more))
    ('#{not-join or-join} head) (apply list head (first more) (clauses as-map (rest more)))
    :else given))

(defn- clauses [as-map given]
  (mapv #(clause as-map %) given))

(defn- rule [as-map [head & body]]
  (into [head] (clauses as-map body)))

(defn- counted-query [as-map q nested?]
  (let [{:keys [find order-by] :as q} (as-map q)
        place (if (or nested? order-by (some aggregated? find)) kept passing)]
    (cond-> (update q :find #(form place (vec %)))
      (:where q) (update :where #(clauses as-map %))
      (:rules q) (update :rules (fn [rules] (mapv #(rule as-map %) rules)))
      order-by (update :order-by #(form place (vec %))))))

(defn counted
  "The query with its functions and aggregates replaced. `as-map` reads a sub-query, which may be a vector or text."
  [q as-map]
  (counted-query as-map q false))

(defn as-written
  "A query, or an error about one, with the names that the query's author used."
  [q]
  (walk/postwalk (fn [part]
                   (cond
                     (not (symbol? part)) part
                     (contains? #{kept passing} (namespace part)) (symbol (name part))
                     :else (or (aggregates/plain part) part)))
                 q))

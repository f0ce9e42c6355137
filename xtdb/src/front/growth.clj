(ns front.growth
  "Limits the size of the values that a query may make out of given or found values.

  `[(str a a) b] [(str b b) c] …` doubles a text with every clause, and the process has no memory left before any limit on time or rows is reached.
  A value's weight is the number of values that it may be made of. A stored, given or literal value has the weight one. The result of a call has the sum
  of its arguments' weights. As in XTDB, the order of clauses does not matter."
  (:require [front.functions :as functions]))

(def heaviest
  "The largest weight that is allowed."
  100)

(defn- bounded [n]
  (min n (inc heaviest)))

;; A making is the result of a clause: {:call the list, :inner the weight of a sub-query, :binds the variables that hold the result}. It can also be
;; {:same, :binds}, variables with the same value.

(defn- variables [form]
  (filter symbol? (tree-seq coll? seq form)))

(defn- form-weight [weights form]
  (cond
    (symbol? form) (get weights form 1)
    (and (seq? form) (functions/small? (first form))) 1
    (coll? form) (bounded (reduce + (map #(form-weight weights %) (if (seq? form) (rest form) (if (map? form) (mapcat identity form) form)))))
    :else 1))

(defn- renamed
  "The clauses of a rule, inserted at its call: the arguments replace the parameters, and all other variables get new names."
  [[[_ & parameters] & body] arguments place]
  (let [given (zipmap (flatten parameters) arguments)
        own (fn [sym] (get given sym (symbol (str place "|" sym))))]
    ((fn rename [form]
       (cond
         (symbol? form) (own form)
         (seq? form) (apply list (first form) (map rename (rest form)))
         (vector? form) (mapv rename form)
         (map? form) form
         (coll? form) (into (empty form) (map rename) form)
         :else form))
     (vec body))))

(declare weight)

(defn- sub-query-weight [q {:keys [as-map] :as context}]
  (weight (as-map (if (and (seq? q) (= 'quote (first q))) (second q) q)) (dissoc context :seen)))

(defn- makings
  "The makings of the clauses, with expanded rules. A rule is not expanded inside itself."
  [clauses {:keys [rules seen] :as context} place]
  (mapcat
   (fn [i clause]
     (let [place (str place "." i)]
       (cond
         (and (vector? clause) (seq? (first clause)))
         (let [[[head & arguments :as call] & bound] clause]
           (cond-> [(if (= 'q head)
                      {:call (cons head (rest arguments)), :inner (sub-query-weight (first arguments) context), :binds (variables bound)}
                      {:call call, :inner 1, :binds (variables bound)})]
             ('#{= ==} head) (conj {:same (variables arguments), :binds (variables arguments)})))

         (seq? clause)
         (let [[head & more] clause]
           (cond
             ('#{not or and} head) (makings more context place)
             ('#{not-join or-join} head) (makings (rest more) context place)
             (contains? seen head) nil
             :else (mapcat (fn [n rule]
                             (makings (renamed rule more (str place "/" n)) (update context :seen (fnil conj #{}) head) (str place "/" n)))
                           (range) (get rules head)))))))
   (range) clauses))

(defn- settled
  "The weights of all variables. Stops once one of them is too heavy."
  [makings]
  (loop [weights {}]
    (let [heavier (reduce (fn [weights {:keys [call inner same binds]}]
                            (let [made (if same
                                         (reduce max 1 (map #(get weights % 1) same))
                                         (bounded (* inner (max 1 (form-weight weights call)))))]
                              (reduce #(update %1 %2 (fnil max 1) made) weights binds)))
                          weights makings)]
      (if (or (= heavier weights) (some #(> % heaviest) (vals heavier)))
        heavier
        (recur heavier)))))

;; A recursive rule makes new values for every row. If it adds something to its input, the value grows step by step until the time limit.
;; If it combines two values that both came through the rule, the value doubles each time.

(defn- called-in [clauses]
  (mapcat (fn [clause]
            (when (seq? clause)
              (let [[head & more] clause]
                (if ('#{not or and not-join or-join} head)
                  (called-in (filter coll? more))
                  [head]))))
          clauses))

(defn- reach
  "The names of the rules that this rule calls, directly or not. Its own name is included only if the rule is recursive."
  [rules rule-name]
  (loop [seen #{}, open [rule-name]]
    (let [found (remove seen (distinct (mapcat (fn [n] (mapcat (fn [[_ & body]] (called-in body)) (get rules n))) open)))]
      (if (empty? found)
        seen
        (recur (into seen found) found)))))

(defn- flat-clauses [clauses]
  (mapcat (fn [clause]
            (if (and (seq? clause) ('#{not or and not-join or-join} (first clause)))
              (flat-clauses (if ('#{not-join or-join} (first clause)) (drop 2 clause) (rest clause)))
              [clause]))
          clauses))

(defn- doubles? [[[_ & parameters] & body]]
  (let [clauses (flat-clauses body)
        calls (filter #(and (vector? %) (seq? (first %))) clauses)
        stored (set (mapcat variables (filter #(and (vector? %) (not (seq? (first %)))) clauses)))
        through (into (set (variables parameters)) (mapcat (comp variables rest)) (filter seq? clauses))
        made (loop [made (remove stored through)]
               (let [more (into (set made)
                                (mapcat (fn [[[_ & arguments] & bound]]
                                          (when (some (set made) (variables arguments)) (variables bound))))
                                calls)]
                 (if (= more (set made)) more (recur more))))]
    (some (fn [[[head & arguments]]]
            (and (not (functions/small? head))
                 (not (functions/number-step? head))
                 (> (count (filter made (variables arguments))) (if (= 'q head) 0 1))))
          calls)))

(defn doubling-rule
  "The name of a recursive rule that may double a value in its recursion, or nil."
  [rules]
  (let [by-name (group-by ffirst rules)
        doubling (set (keep (fn [[rule-name legs]] (when (some doubles? legs) rule-name)) by-name))]
    (when (seq doubling)
      (some (fn [rule-name]
              (let [reached (reach by-name rule-name)]
                (when (and (contains? reached rule-name) (some doubling reached)) rule-name)))
            (keys by-name)))))

(defn weight
  "The weight of the heaviest value that a query may make, counted until just past `heaviest`. `context` has the `:rules` in force by
  name, and `:as-map`, which reads a sub-query."
  [{:keys [find where order-by rules]} context]
  (let [context (update context :rules #(merge-with into % (group-by ffirst rules)))
        weights (settled (makings where context "v"))]
    (reduce max 1 (concat (vals weights)
                          (map #(form-weight weights %) (remove #(and (seq? %) (= 'pull (first %))) find))
                          (map #(form-weight weights %) order-by)))))

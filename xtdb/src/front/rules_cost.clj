(ns front.rules-cost
  "Counts the clauses of a query after XTDB has expanded its rules.

  XTDB expands every rule call during planning, before it finds any row, and cannot be interrupted there.
  Thirty rules that each call the next one twice would make a thousand million clauses.")

(declare clause-cost)

(defn- clauses-cost [clauses context total]
  (reduce (fn [total clause]
            (if (> total (:limit context))
              (reduced total)
              (clause-cost clause context total)))
          total clauses))

(defn- list-cost [[head & more] {:keys [rules seen] :as context} total]
  (cond
    (contains? '#{not and or} head) (clauses-cost more context total)
    (contains? '#{not-join or-join} head) (clauses-cost (rest more) context total)
    (contains? seen head) total
    :else (reduce (fn [total [_head & body]]
                    (clauses-cost body (update context :seen conj head) total))
                  total (get rules head))))

(defn- clause-cost [clause context total]
  (if (seq? clause)
    (list-cost clause context (inc total))
    (inc total)))

(defn cost
  "The number of clauses of `where` with expanded rules, counted until just past `limit`."
  [where rules limit]
  (clauses-cost where
                {:rules (group-by ffirst rules), :seen #{}, :limit limit}
                0))

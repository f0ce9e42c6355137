(ns front.aggregates
  "Versions of XTDB's value-holding aggregates that count what they hold. Loading this namespace adds them to XTDB under separate names."
  (:require [front.allowance :as allowance]
            [front.refusal :as refusal]
            [front.size :as size]
            [xtdb.query :as query]))

(def ^:private most-drawn
  "The maximum number of values that `rand` draws."
  1000000)

(def ^:private prefix "counted-")

(def holding
  "The aggregates that hold values."
  '#{count-distinct distinct max median min rand sample})

(defn counted
  "The name of the counted version."
  [sym]
  (symbol (str prefix (name sym))))

(defn plain
  "The plain name of the aggregate with this counted name, or nil if the symbol is not a counted name."
  [sym]
  (when (and (symbol? sym) (nil? (namespace sym)) (.startsWith (name sym) prefix))
    (let [named (symbol (subs (name sym) (count prefix)))]
      (when (holding named) named))))

(defn- counting
  "The aggregate, which now counts each value that it holds."
  [step]
  (fn
    ([] (step))
    ([acc] (step acc))
    ([acc v]
     (let [before (count acc)
           after (step acc v)]
       (when (> (count after) before)
         (allowance/held! (size/measure v size/largest-value)))
       after))))

(doseq [sym holding]
  (defmethod query/aggregate (counted sym) [_ & args]
    (counting (apply query/aggregate sym args))))

(defmethod query/aggregate (counted 'rand) [_ n]
  (when-not (and (pos-int? n) (<= n most-drawn))
    (throw (refusal/illegal-argument :value-too-large (str "rand draws at most " most-drawn " values"))))
  (counting (query/aggregate 'rand n)))

(ns front.bounding
  "Versions of `clojure.core`'s functions that check the size of their results: `front.bounded` and `front.passing` consist of them."
  (:require [front.allowance :as allowance]
            [front.collisions :as collisions]
            [front.deadline :as deadline]
            [front.functions :as functions]
            [front.refusal :as refusal]
            [front.size :as size])
  (:import (java.util Collection List Map Set)))

(set! *warn-on-reflection* true)

(defn- too-large []
  (refusal/illegal-argument :value-too-large (str "A value of more than " size/largest-value " characters")))

(defn- fits! ^long [^long n]
  (when (> n size/largest-value) (throw (too-large)))
  n)

(defn- text-fits!
  "Checks these parts before a text is made of them: afterwards it is too late."
  [parts]
  (reduce (fn [n part] (fits! (+ (long n) (size/measure part size/largest-value)))) 0 parts))

(defn- product-fits! [factors]
  (text-fits! (filter number? factors)))

(defn- every-other [items] (take-nth 2 items))

(defn- elements [v]
  (cond
    (instance? Map v) (.keySet ^Map v)
    (instance? Collection v) v
    :else nil))

(defn- keys-checked! [& parts]
  (collisions/check! (into [] cat parts)))

(def ^:private before
  "By function: the check before its call, because its result may be large or slow to make."
  {'str text-fits!
   '* product-fits!
   '*' product-fits!
   'set (fn [[coll]] (keys-checked! (elements coll)))
   'frequencies (fn [[coll]] (keys-checked! (elements coll)))
   'distinct (fn [[coll]] (keys-checked! (elements coll)))
   'distinct? (fn [args] (keys-checked! args))
   'hash-set (fn [args] (keys-checked! args))
   'hash-map (fn [args] (keys-checked! (every-other args)))
   'array-map (fn [args] (keys-checked! (every-other args)))
   'zipmap (fn [[ks]] (keys-checked! (elements ks)))
   'merge (fn [maps] (apply keys-checked! (map elements maps)))
   'conj (fn [[coll & more]]
           (cond
             (instance? Map coll) (apply keys-checked! (elements coll)
                                         (map #(if (instance? List %) (take 1 %) (elements %)) more))
             (instance? Set coll) (keys-checked! coll more)))
   'assoc (fn [[coll & more]] (when (instance? Map coll) (keys-checked! (elements coll) (every-other more))))})

(defn checked
  "A version of the function `f` named `sym` that refuses to make a value that is too large. It passes the size of each result to `note!`."
  [sym f note!]
  (let [look! (get before sym)]
    (fn [& args]
      (deadline/check!)
      (when look! (look! args))
      (let [made (apply f args)]
        (note! (fits! (size/measure made size/largest-value)))
        made))))

(defn kept!
  "Counts a value that a clause made; XTDB keeps it until the query ends."
  [n]
  (allowance/made! n))

(defmacro define-making
  "Defines a checked version of each function that may make a large value in this namespace, under the same name."
  [note!]
  `(do ~@(for [sym (sort functions/making)]
           `(def ~sym (checked '~sym ~(symbol "clojure.core" (name sym)) ~note!)))))

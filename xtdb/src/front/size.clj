(ns front.size
  "Measures the size of a value, up to a limit: one unit for each character or byte, and a few for each part."
  (:require [front.refusal :as refusal])
  (:import (clojure.lang Keyword Ratio Symbol)
           (java.util Iterator Map)))

(set! *warn-on-reflection* true)

(def ^:const largest-value
  "The largest document, argument of a query, or value that a query makes."
  16777216)

(def ^:const ^:private part 16)
(def ^:const ^:private deepest 1000)

(defn- bits ^long [n]
  (quot (.bitLength (biginteger n)) 8))

(defn- leaf ^long [v]
  (cond
    (string? v) (.length ^String v)
    (or (instance? Keyword v) (instance? Symbol v)) (.length (str v))
    (instance? Ratio v) (+ (bits (.numerator ^Ratio v)) (bits (.denominator ^Ratio v)))
    (instance? BigDecimal v) (bits (.unscaledValue ^BigDecimal v))
    (or (instance? clojure.lang.BigInt v) (instance? BigInteger v)) (bits v)
    (bytes? v) (alength ^bytes v)
    :else 0))

(declare measure-from)

(defn- measure-all ^long [^Iterable items ^long total ^long limit ^long depth]
  (let [^Iterator items (.iterator items)]
    (loop [total total]
      (if (and (<= total limit) (.hasNext items))
        (recur (long (measure-from (.next items) total limit depth)))
        total))))

(defn- measure-from [v total limit depth]
  (let [total (+ (long total) part)
        depth (inc (long depth))]
    (cond
      (> depth deepest) (throw (refusal/illegal-argument :too-deep "Nested too deeply"))
      (> total (long limit)) total
      (instance? Map v) (measure-all (.values ^Map v) (measure-all (.keySet ^Map v) total limit depth) limit depth)
      (instance? Iterable v) (measure-all v total limit depth)
      :else (+ total (leaf v)))))

(defn measure
  "The size of this value, or a number above `limit` for a larger value. It visits, and so realises, no more of the value than that."
  ^long [v ^long limit]
  (long (measure-from v 0 limit 0)))

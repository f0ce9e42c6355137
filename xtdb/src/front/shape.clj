(ns front.shape
  "Checks that a value is plain data of bounded depth, number size and count."
  (:require [front.refusal :as refusal]
            [front.scan :as scan])
  (:import (clojure.lang IObj Keyword Ratio Symbol)
           (java.net URI URL)
           (java.time Duration Instant LocalDate LocalDateTime LocalTime ZonedDateTime)
           (java.util Collection Date Map UUID)
           (xtdb.codec EDNId Id)))

(set! *warn-on-reflection* true)

(def ^:private largest-scale 10000)
(def ^:private most-bits 4096)

(defn- number-fault [n]
  (cond
    (instance? BigDecimal n) (when (or (> (abs (.scale ^BigDecimal n)) largest-scale)
                                       (> (.bitLength (.unscaledValue ^BigDecimal n)) most-bits))
                               "a number too large")
    (instance? Ratio n) (when (> (max (.bitLength (.numerator ^Ratio n)) (.bitLength (.denominator ^Ratio n))) most-bits)
                          "a number too large")
    (or (instance? clojure.lang.BigInt n) (instance? BigInteger n)) (when (> (.bitLength (biginteger n)) most-bits)
                                                                      "a number too large")))

(def ^:private plain-classes
  [String Boolean Keyword Symbol Character UUID Date Id EDNId URI URL Duration Instant LocalDate LocalDateTime LocalTime ZonedDateTime])

(def ^:private plain-class? (into #{} plain-classes))

(defn fault
  "Describes what is wrong with this value, or nil. Wrong are values that are not data, metadata, and numbers or nesting beyond the limit."
  ([v] (fault v 0))
  ([v depth]
   (let [deeper #(fault % (inc depth))]
     (cond
       (nil? v) nil
       (number? v) (number-fault v)
       (and (instance? IObj v) (seq (meta v))) "metadata"
       (plain-class? (class v)) nil
       (> depth scan/max-depth) "nesting that is too deep"
       (instance? Map v) (some (fn [[k item]] (or (deeper k) (deeper item))) v)
       (instance? Collection v) (some deeper v)
       (bytes? v) nil
       :else (str "a value of " (class v))))))

(defn check!
  "Throws a 400 refusal with this error key if the value is not plain."
  [v error-key]
  (when-let [found (fault v)]
    (throw (refusal/illegal-argument error-key (str "Contains " found)))))

(defn node-count
  "The number of values that this value consists of, counted up to `limit`."
  [v limit]
  (letfn [(walk [n v]
            (cond
              (> n limit) (reduced n)
              (instance? Map v) (reduce-kv (fn [n k item] (unwrap-walk (unwrap-walk n k) item)) (inc n) v)
              (instance? Collection v) (reduce unwrap-walk (inc n) v)
              :else (inc n)))
          (unwrap-walk [n v]
            (unreduced (walk n v)))]
    (unreduced (walk 0 v))))

(defn short-text
  "A value as a short text for an error."
  [v]
  (binding [*print-length* 5, *print-level* 3, *print-meta* false]
    (let [text (pr-str v)]
      (if (> (count text) 200) (str (subs text 0 200) "…") text))))

(ns front.collisions
  "Refuses keys that were chosen to have the same hash.

  A hash map compares each new key with all earlier keys of the same hash: 32,768 of them take minutes. Among keys that nobody chose for this purpose,
  more than a handful of equal hashes do not occur."
  (:require [front.refusal :as refusal])
  (:import (clojure.lang Symbol)
           (java.util ArrayList Arrays Collection HashMap)))

(set! *warn-on-reflection* true)

(def ^:const most-of-one-hash
  "The maximum number of keys in one map or set that may have the same hash."
  64)

(defn- refuse []
  (throw (refusal/illegal-argument :too-many-collisions
                                   (str "More than " most-of-one-hash " keys of one map or set have the same hash"))))

(defn- repeated
  "The hashes that occur more often than is allowed."
  [^ints sorted]
  (let [n (alength sorted)]
    (loop [i most-of-one-hash, found #{}]
      (if (>= i n)
        found
        (recur (inc i) (if (= (aget sorted i) (aget sorted (- i most-of-one-hash))) (conj found (aget sorted i)) found))))))

(defn- distinct-count
  "The number of different keys among these, counted until just past the limit."
  [ks]
  (reduce (fn [^ArrayList seen k]
            (cond
              (.contains seen k) seen
              (= most-of-one-hash (.size seen)) (refuse)
              :else (doto seen (.add k))))
          (ArrayList.) ks))

(defn check!
  "Throws a 400 refusal if too many different keys among these have the same `hash-of`."
  ([ks] (check! ks hash))
  ([^Collection ks hash-of]
   (when (> (.size ks) most-of-one-hash)
     (let [hashes (int-array (.size ks))]
       (loop [i 0, it (.iterator ks)]
         (when (.hasNext it)
           (aset hashes i (int (hash-of (.next it))))
           (recur (inc i) it)))
       (Arrays/sort hashes)
       (doseq [h (repeated hashes)]
         (distinct-count (filter #(= h (hash-of %)) ks)))))))

(defn- keys-of [^ArrayList entries]
  (let [ks (ArrayList. (quot (.size entries) 2))]
    (loop [i 0]
      (when (< i (.size entries))
        (.add ks (.get entries i))
        (recur (+ i 2))))
    ks))

(defn map-of
  "The map of these alternating keys and values; of equal keys the last counts. Throws a 400 refusal."
  [^ArrayList entries]
  (when (> (.size entries) (* 2 most-of-one-hash)) (check! (keys-of entries)))
  (loop [i 0, m (transient {})]
    (if (< i (.size entries))
      (recur (+ i 2) (assoc! m (.get entries i) (.get entries (inc i))))
      (persistent! m))))

(defn java-hash
  "The hash that Java's maps use."
  [v]
  (if (nil? v) 0 (.hashCode ^Object v)))

(defn keyword-reader
  "A function that makes keywords of texts and limits the number of different ones with the same hash. Each body has its own function.

  Clojure keeps all keywords in one Java table, where equal hashes are as slow as in a map."
  []
  (let [made (HashMap.)
        of-hash (HashMap.)]
    (fn [^String text]
      (or (.get made text)
          (let [sym (Symbol/intern text)
                n (inc (long (.getOrDefault of-hash (.hashCode sym) 0)))]
            (when (> n (long most-of-one-hash)) (refuse))
            (.put of-hash (.hashCode sym) n)
            (let [k (keyword sym)]
              (.put made text k)
              k))))))

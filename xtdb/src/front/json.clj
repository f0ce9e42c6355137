(ns front.json
  "Reads and writes JSON. Keys become keywords in input, and instants have whole seconds in output, as in XTDB's HTTP API."
  (:require [clojure.string :as str]
            [front.collisions :as collisions]
            [front.edn :as edn]
            [front.entity-ref]
            [front.scan :as scan]
            [xtdb.codec :as c])
  (:import (clojure.lang Keyword Ratio)
           (com.fasterxml.jackson.core JsonFactory JsonGenerator JsonGenerator$Feature JsonParser JsonToken StreamReadConstraints)
           (front.entity_ref EntityRef)
           (java.io OutputStream)
           (java.time ZoneOffset)
           (java.time.format DateTimeFormatter)
           (java.util ArrayList Collection Date Iterator Map)))

(set! *warn-on-reflection* true)

(def ^:private ^JsonFactory factory
  (-> (JsonFactory/builder)
      (.streamReadConstraints (-> (StreamReadConstraints/builder)
                                  (.maxNestingDepth scan/max-depth)
                                  (.maxNumberLength scan/max-digits)
                                  (.maxStringLength Integer/MAX_VALUE)
                                  (.build)))
      (.build)
      (doto (.configure JsonGenerator$Feature/AUTO_CLOSE_TARGET false))))

(declare read-token)

(defn- read-object [^JsonParser in as-key]
  (let [entries (ArrayList.)]
    (loop []
      (if (= JsonToken/END_OBJECT (.nextToken in))
        (collisions/map-of entries)
        (do (.add entries (as-key (.currentName in)))
            (.add entries (read-token in (.nextToken in) as-key))
            (recur))))))

(defn- read-array [^JsonParser in as-key]
  (loop [v (transient [])]
    (let [token (.nextToken in)]
      (if (= JsonToken/END_ARRAY token)
        (persistent! v)
        (recur (conj! v (read-token in token as-key)))))))

(defn- read-integer [^JsonParser in]
  (let [n (.getNumberValue in)]
    (if (instance? BigInteger n) (bigint n) (long n))))

(defn- read-token [^JsonParser in token as-key]
  (condp = token
    JsonToken/VALUE_STRING (.getText in)
    JsonToken/START_OBJECT (read-object in as-key)
    JsonToken/START_ARRAY (read-array in as-key)
    JsonToken/VALUE_NUMBER_INT (read-integer in)
    JsonToken/VALUE_NUMBER_FLOAT (.getDoubleValue in)
    JsonToken/VALUE_TRUE true
    JsonToken/VALUE_FALSE false
    JsonToken/VALUE_NULL nil
    (throw (ex-info "JSON refused: cut off" {:fault :cut-off}))))

(defn- read-with [^JsonParser in]
  (let [v (read-token in (.nextToken in) (collisions/keyword-reader))]
    (when (.nextToken in)
      (throw (ex-info "JSON refused: something follows the value" {:fault :trailing})))
    v))

(defn read-one
  "The value of these bytes, with integers as longs. Throws if they are cut off, have trailing data, or nest too deeply."
  [^bytes body]
  (with-open [in (.createParser factory body)]
    (read-with in)))

(defn read-text
  "The value that this text holds."
  [^String text]
  (with-open [in (.createParser factory text)]
    (read-with in)))

(def ^:private ^DateTimeFormatter to-the-second
  (.withZone (DateTimeFormatter/ofPattern "yyyy-MM-dd'T'HH:mm:ss'Z'") ZoneOffset/UTC))

(defn- key-text ^String [k]
  (cond
    (instance? Keyword k) (subs (str k) 1)
    (string? k) k
    (nil? k) ""
    :else (str k)))

(defn camel-case
  "The key in the form of the top level of JSON: without its namespace, in camelCase."
  [k]
  (let [[head & more] (str/split (if (instance? clojure.lang.Named k) (name k) (str k)) #"-+")]
    (apply str head (map #(str (str/upper-case (subs % 0 1)) (subs % 1)) more))))

(defn camel-case-keys
  "A map with its top-level keys in camelCase, or any other value unchanged."
  [m]
  (if (map? m) (into {} (map (fn [[k v]] [(camel-case k) v])) m) m))

(defn- write-list-value? [v]
  (and (seq? v) (contains? '#{fn fn*} (first v))))

(defn- write-number [v ^JsonGenerator out]
  (cond
    (instance? Long v) (.writeNumber out (long v))
    (or (instance? Double v) (instance? Float v)) (.writeNumber out (double v))
    (instance? BigDecimal v) (.writeNumber out ^BigDecimal v)
    (instance? Ratio v) (.writeNumber out (double v))
    :else (.writeNumber out (biginteger v))))

(defn- write-value [v ^JsonGenerator out]
  (cond
    (nil? v) (.writeNull out)
    (string? v) (.writeString out ^String v)
    (boolean? v) (.writeBoolean out (boolean v))
    (number? v) (write-number v out)
    (instance? Keyword v) (.writeString out (key-text v))
    (instance? Date v) (.writeString out (.format to-the-second (.toInstant ^Date v)))
    (instance? EntityRef v) (.writeString out (str (:eid v)))
    (write-list-value? v) (.writeString out (edn/text v))
    (instance? Map v) (do (.writeStartObject out)
                          (doseq [[k item] v]
                            (.writeFieldName out (key-text k))
                            (write-value item out))
                          (.writeEndObject out))
    (or (sequential? v) (instance? Collection v)) (do (.writeStartArray out)
                                                      (doseq [item v] (write-value item out))
                                                      (.writeEndArray out))
    (bytes? v) (.writeString out (c/base64-writer v))
    :else (.writeString out (str v))))

(defn write
  "Writes one value."
  [v ^OutputStream out]
  ;; The generator is never closed: after a failure, closing would complete the JSON, and a cut-off answer would look complete.
  (let [generator (.createGenerator factory out)]
    (write-value v generator)
    (.flush generator)))

(defn write-list
  "Writes the items as one array, each at once when the iterator returns it."
  [^Iterator items ^OutputStream out]
  (let [generator (.createGenerator factory out)]
    (.writeStartArray generator)
    (while (.hasNext items)
      (write-value (.next items) generator))
    (.writeEndArray generator)
    (.flush generator)))

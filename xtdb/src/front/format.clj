(ns front.format
  "The encodings of bodies and answers, and the choice among them."
  (:require [clojure.string :as str]
            [front.edn :as edn]
            [front.json :as json]
            [front.transit :as transit])
  (:import (java.io BufferedWriter OutputStream OutputStreamWriter Writer)
           (java.nio.charset StandardCharsets)
           (java.util Iterator)))

(set! *warn-on-reflection* true)

(defn- utf-8-writer ^Writer [^OutputStream out]
  (BufferedWriter. (OutputStreamWriter. out StandardCharsets/UTF_8) 16384))

(defn- write-edn [v out]
  (let [w (utf-8-writer out)]
    (edn/write v w)
    (.flush w)))

(defn- write-edn-list [^Iterator items out]
  (let [w (utf-8-writer out)]
    (.write w "(")
    (loop [separate? false]
      (when (.hasNext items)
        (when separate? (.write w " "))
        (edn/write (.next items) w)
        (recur true)))
    (.write w ")")
    (.flush w)))

(defn- separated-field ^String [v ^String separator]
  (let [text (if (nil? v) "" (str v))]
    (if (or (str/includes? text separator) (re-find #"[\"\r\n]" text))
      (str \" (str/replace text "\"" "\"\"") \")
      text)))

(defn- write-separated-list [separator ^Iterator items out]
  (let [w (utf-8-writer out)]
    (while (.hasNext items)
      (.write w (str (str/join separator (map #(separated-field % separator) (.next items))) "\n")))
    (.flush w)))

(def encoders
  "By media type: how to write one value, and how to write a list item by item."
  {"application/edn" {:write write-edn, :write-list write-edn-list}
   "application/transit+json" {:write transit/write, :write-list transit/write-list}
   "application/json" {:write json/write, :write-list json/write-list}
   "text/csv" {:write write-edn, :write-list (partial write-separated-list ",")}
   "text/tsv" {:write write-edn, :write-list (partial write-separated-list "\t")}})

(def default-format "application/edn")

(def common-formats ["application/edn" "application/transit+json" "application/json"])

(def query-formats (into common-formats ["text/csv" "text/tsv"]))

(defn- accepted-range [text]
  (let [[range & parameters] (map str/trim (str/split text #";"))
        weight (some #(second (re-matches #"(?i)q=([0-9.]+)" %)) parameters)]
    [(str/lower-case range) (or (some-> weight parse-double) (if weight 0.0 1.0))]))

(defn negotiate
  "The first format with the Accept header's highest preference. EDN if there is no header or no format fits."
  [^String accept formats]
  (let [ranges (->> (str/split (or accept "") #",")
                    (map accepted-range)
                    (filter (comp pos? second))
                    (sort-by (comp - second)))]
    (or (some (fn [[range]] (some #{range} formats)) (take-while (fn [[range]] (not= "*/*" range)) ranges))
        default-format)))

(defn media-type
  "The media type of a Content-Type header, without its parameters."
  [content-type]
  (some-> content-type (str/split #";") first str/trim str/lower-case))

(def decoders
  "By media type: the function that decodes the bytes of a body. The bytes are never empty."
  {"application/edn" (fn [^bytes body] (edn/read-one (String. body StandardCharsets/UTF_8) nil))
   "application/transit+json" transit/read-one
   "application/json" json/read-one})

(ns front.transit
  "Transit (JSON) in and out, with XTDB's own tags."
  (:require [cognitect.transit :as transit]
            [front.collisions :as collisions]
            [front.edn :as edn]
            [front.entity-ref]
            [front.scan :as scan]
            [xtdb.codec :as c])
  (:import (com.cognitect.transit MapReader Reader TransitFactory TransitFactory$Format)
           (com.cognitect.transit.SPI ReaderSPI)
           (com.fasterxml.jackson.core StreamReadConstraints)
           (front.entity_ref EntityRef)
           (java.io ByteArrayInputStream OutputStream)
           (java.time Duration Instant LocalDate LocalDateTime LocalTime ZonedDateTime)
           (java.util AbstractCollection ArrayList Collection Iterator)
           (xtdb.codec EDNId Id)))

(set! *warn-on-reflection* true)

(defn limit-parser!
  "Limits what Transit's JSON parser reads: nesting, digits, and the length of strings, which is that of a body."
  [max-body]
  (StreamReadConstraints/overrideDefaultStreamReadConstraints
   (-> (StreamReadConstraints/builder)
       (.maxNestingDepth (* 2 scan/max-depth))
       (.maxNumberLength scan/max-digits)
       (.maxStringLength (int (min max-body Integer/MAX_VALUE)))
       (.build))))

(defn- long-number-guard [convert]
  (transit/read-handler
   (fn [digits]
     (when (> (count digits) scan/max-digits)
       (throw (ex-info "Transit refused: number-too-long" {:fault :number-too-long})))
     (convert digits))))

(defn- set-of [^Collection items]
  (collisions/check! items)
  (into #{} items))

(def ^:private read-handlers
  {"set" (transit/read-handler set-of)
   "cmap" (transit/read-handler #(collisions/map-of (ArrayList. ^Collection %)))
   "n" (long-number-guard #(bigint (BigInteger. ^String %)))
   "f" (long-number-guard #(BigDecimal. ^String %))
   "xtdb/oid" (transit/read-handler edn/read-id)
   "xtdb/base64" (transit/read-handler c/base64-reader)
   "xtdb/duration" (transit/read-handler c/duration-reader)
   "xtdb/instant" (transit/read-handler c/instant-reader)
   "xtdb/zdt" (transit/read-handler c/zdt-reader)
   "xtdb/local-date" (transit/read-handler c/local-date-reader)
   "xtdb/local-time" (transit/read-handler c/local-time-reader)
   "xtdb/local-date-time" (transit/read-handler c/local-date-time-reader)})

(def ^:private all-read-handlers
  (merge transit/default-read-handlers read-handlers))

(defn- map-builder
  "Collects the entries of a map, so that its keys are checked before it is made."
  ^MapReader []
  (reify MapReader
    (init [_] (ArrayList.))
    (init [_ _size] (ArrayList.))
    (add [_ entries k v] (doto ^ArrayList entries (.add k) (.add v)))
    (complete [_ entries] (collisions/map-of entries))))

(defn read-one
  "The value of these bytes. Throws if they are cut off or not Transit, and a refusal if keys collide."
  [^bytes body]
  (let [reader (TransitFactory/reader TransitFactory$Format/JSON (ByteArrayInputStream. body)
                                      (assoc all-read-handlers ":" (transit/read-handler (collisions/keyword-reader)))
                                      nil)]
    (.read ^Reader (.setBuilders ^ReaderSPI reader (map-builder) (transit/list-builder)))))

;; Transit asks a collection for its size before iterating over it, which would realise a lazy sequence.
(deftype ^:private Items [^Iterator items])

(defn- sizeless ^AbstractCollection [^Iterator items]
  (proxy [AbstractCollection] []
    (size [] 0)
    (isEmpty [] false)
    (iterator [] items)))

(def ^:private sizeless-class (class (sizeless nil)))

(defn- text-handler [tag]
  (transit/write-handler (constantly tag) str))

(def ^:private write-handlers
  {EntityRef (transit/write-handler (constantly "xtdb.http/entity-ref") :eid)
   Id (text-handler "xtdb/oid")
   EDNId (text-handler "xtdb/oid")
   (Class/forName "[B") (transit/write-handler (constantly "xtdb/base64") #(c/base64-writer %))
   Duration (text-handler "xtdb/duration")
   Instant (text-handler "xtdb/instant")
   ZonedDateTime (text-handler "xtdb/zdt")
   LocalDate (text-handler "xtdb/local-date")
   LocalTime (text-handler "xtdb/local-time")
   LocalDateTime (text-handler "xtdb/local-date-time")
   Items (transit/write-handler (constantly "list") #(sizeless (.-items ^Items %)))
   sizeless-class (transit/write-handler (constantly "array") identity)})

(defn write
  "Writes one value."
  [v ^OutputStream out]
  (transit/write (transit/writer out :json {:handlers write-handlers}) v))

(defn write-list
  "Writes the items as one list, each at once when the iterator returns it."
  [^Iterator items ^OutputStream out]
  (write (Items. items) out))

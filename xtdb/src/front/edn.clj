(ns front.edn
  "EDN in and out, with XTDB's own tags."
  (:require [clojure.edn :as edn]
            [front.edn-maps :as edn-maps]
            [front.scan :as scan]
            [xtdb.codec :as c])
  (:import (clojure.lang Keyword Symbol)
           (java.io PushbackReader StringReader StringWriter Writer)
           (java.time Duration Instant LocalDate LocalDateTime LocalTime ZonedDateTime)
           (java.util List Map Set)))

(set! *warn-on-reflection* true)

(def ^:private longest-id-text 4096)

(defn read-id
  "The id that `#xtdb/id` names. The text may itself be a map in EDN, so it is scanned as well."
  [v]
  (when (and (string? v) (or (> (count v) (long longest-id-text)) (scan/fault v)))
    (throw (ex-info "Id refused" {:fault :id})))
  (c/id-edn-reader v))

(def ^:private tags
  {'xtdb/id read-id
   'crux/id read-id
   'xtdb/base64 c/base64-reader
   'crux/base64 c/base64-reader
   'xtdb/duration c/duration-reader
   'xtdb/instant c/instant-reader
   'xtdb/zdt c/zdt-reader
   'xtdb/local-date c/local-date-reader
   'xtdb/local-time c/local-time-reader
   'xtdb/local-date-time c/local-date-time-reader})

(def ^:private readers
  (merge tags edn-maps/readers))

(defn read-one
  "The only form in this text, or `absent` if there is none.
  Throws if the text is cut off, if something follows the form, if it nests too deeply, and for an unknown tag. Throws a refusal if keys collide."
  [^String text absent]
  (when-let [fault (scan/fault text)]
    (throw (ex-info (str "EDN refused: " (name fault)) {:fault fault})))
  (with-open [in (PushbackReader. (StringReader. (edn-maps/marked text)))]
    (let [opts {:readers readers, :eof absent}
          form (edn/read opts in)]
      (when-not (or (identical? absent form) (identical? absent (edn/read opts in)))
        (throw (ex-info "Something follows the form" {:fault :trailing})))
      form)))

(declare write)

(defn- write-string [^String s ^Writer w]
  (.write w "\"")
  (let [end (.length s)]
    (loop [from 0, at 0]
      (if (= at end)
        (.write w s from (- end from))
        (let [c (.charAt s at)]
          (if-let [^String escape (case c
                                    \" "\\\"", \\ "\\\\", \newline "\\n", \return "\\r", \tab "\\t"
                                    \formfeed "\\f", \backspace "\\b"
                                    nil)]
            (do (.write w s from (- at from))
                (.write w escape)
                (recur (inc at) (inc at)))
            (recur from (inc at)))))))
  (.write w "\""))

(defn- write-items [^String open items ^String close ^Writer w]
  (.write w open)
  (reduce (fn [first? item]
            (when-not first? (.write w " "))
            (write item w)
            false)
          true items)
  (.write w close))

(defn- write-map [m ^Writer w]
  (.write w "{")
  (reduce (fn [first? [k v]]
            (when-not first? (.write w ", "))
            (write k w)
            (.write w " ")
            (write v w)
            false)
          true m)
  (.write w "}"))

(defn- write-tagged [tag text ^Writer w]
  (.write w (str "#xtdb/" tag " "))
  (write-string (str text) w))

(defn- write-other [v ^Writer w]
  (condp instance? v
    Duration (write-tagged "duration" v w)
    Instant (write-tagged "instant" v w)
    ZonedDateTime (write-tagged "zdt" v w)
    LocalDate (write-tagged "local-date" v w)
    LocalTime (write-tagged "local-time" v w)
    LocalDateTime (write-tagged "local-date-time" v w)
    (if (bytes? v)
      (write-tagged "base64" (c/base64-writer v) w)
      (binding [*print-length* nil, *print-level* nil, *print-namespace-maps* false, *print-meta* false, *print-dup* false, *print-readably* true]
        (print-method v w)))))

(defn write
  "Writes one value to `w`, independent of Clojure's printing variables. Lists begin with exactly `(`."
  [v ^Writer w]
  (cond
    (nil? v) (.write w "nil")
    (string? v) (write-string v w)
    (or (instance? Keyword v) (instance? Symbol v) (instance? Long v) (boolean? v)) (.write w (.toString ^Object v))
    (record? v) (write-other v w)
    (instance? Map v) (write-map v w)
    (vector? v) (write-items "[" v "]" w)
    (instance? Set v) (write-items "#{" v "}" w)
    (or (seq? v) (instance? List v)) (write-items "(" v ")" w)
    :else (write-other v w)))

(defn text
  "One value as EDN text."
  ^String [v]
  (let [w (StringWriter.)]
    (write v w)
    (.toString w)))

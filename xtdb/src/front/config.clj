(ns front.config
  "Reads XTDB's configuration from an EDN file and makes it safe."
  (:require [clojure.data.json :as json]
            [clojure.edn :as edn]
            [clojure.java.io :as io]
            [clojure.walk :as walk])
  (:import (java.nio.file Path)))

(set! *warn-on-reflection* true)

(defn- invalid [message]
  (ex-info message {::invalid true}))

(defn invalid?
  "Whether this exception says that the configuration file is wrong."
  [e]
  (true? (::invalid (ex-data e))))

(defn- read-settings [^Path file]
  (let [settings (try
                   (json/read-str (slurp (.toFile file)))
                   (catch Exception e
                     (throw (invalid (str "Cannot read " file ": " (ex-message e))))))]
    (if (map? settings)
      settings
      (throw (invalid (str file " does not hold an object"))))))

(defn- setting
  "The value at a path of keys, which enters the configuration unchanged."
  [settings path]
  (let [found (get-in settings path)]
    (if (nil? found)
      (throw (ex-info (str "it needs the setting " (pr-str path) ", which --settings has to give") {}))
      found)))

(defn- read-map [^Path file settings]
  (let [config (try
                 (edn/read-string {:readers {'front/setting #(setting settings %)}} (slurp (.toFile file)))
                 (catch Exception e
                   (throw (invalid (str "Cannot read " file ": " (ex-message e))))))]
    (if (map? config)
      config
      (throw (invalid (str file " does not hold a map"))))))

(def ^:private path-keys [:db-dir :root-path :path])

(defn- resolve-path
  "A file object instead of a name: XTDB reads a name as a URI, which must not contain a space."
  [^Path data k value]
  (let [given (.toPath (io/file value))]
    (cond
      (.isAbsolute given) (.toFile given)
      data (.toFile (.resolve (.toAbsolutePath data) given))
      :else (throw (invalid (str (name k) " " value " is relative; name the data folder with --data"))))))

(defn- resolve-paths [data config]
  (walk/postwalk
   (fn [part]
     (if (map? part)
       (reduce (fn [m k] (if (string? (get m k)) (update m k #(resolve-path data k %)) m)) part path-keys)
       part))
   config))

(defn- only-pure-functions [config]
  ;; Without this key XTDB allows every function; an empty vector means XTDB's own list of pure functions.
  (update-in config [:xtdb/query-engine :fn-allow-list] #(or % [])))

(def ^:private documents-at-once
  "The number of documents that a query fetches together; a query may set another number with :batch-size."
  16)

(defn- bounded [config]
  ;; XTDB's cache limits the number of documents, not their size.
  (let [documents (-> (merge {:xtdb/module 'xtdb.kv.document-store/->document-store} (:xtdb/document-store config))
                      (update :document-cache #(merge {:cache-size 1024} % {:xtdb/module 'front.documents/->cache})))]
    (-> config
        (assoc :front/documents documents)
        (assoc :xtdb/document-store {:xtdb/module 'front.documents/->document-store})
        (update-in [:xtdb/query-engine :fn-allow-list] #(into ['front.bounded 'front.passing] %))
        (update-in [:xtdb/query-engine :batch-size] #(or % documents-at-once)))))

(defn- checked [config]
  (walk/postwalk-replace {'xtdb.rocksdb/->kv-store 'front.checked-store/->kv-store} config))

(defn load-config
  "The configuration of the file `config`. Relative paths are resolved against `data`, and `#front/setting` is replaced by the value in the JSON file
  `settings`. Functions in queries are limited whatever the file says, documents are counted and cached by size, and damage in RocksDB's files is always
  an error. Throws an exception of `invalid?`."
  [{:keys [config data settings]}]
  (->> (read-map config (some-> settings read-settings))
       (resolve-paths data)
       only-pure-functions
       bounded
       checked))

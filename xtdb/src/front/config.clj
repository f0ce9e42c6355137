(ns front.config
  "XTDB's configuration, read from an EDN file and made safe."
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
  "What stands at a path of keys: data that is put into the configuration as it is."
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
  "A file rather than its name: XTDB reads a name as a URI, in which a space must not stand."
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
  ;; Absent means every function there is; an empty vector means XTDB's own list of pure ones.
  (update-in config [:xtdb/query-engine :fn-allow-list] #(or % [])))

(def ^:private documents-at-once
  "How many documents a query looks up together; a query may ask for another number with :batch-size."
  16)

(defn- bounded [config]
  ;; XTDB's cache counts documents, whatever their size.
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
  "The configuration of the file `config`: relative paths resolved against `data`, `#front/setting` replaced by what stands in the JSON file `settings`,
  functions in queries limited whatever the file says of them, documents counted and cached by size, damage in RocksDB's files an error wherever it is met.
  Throws an exception of `invalid?`."
  [{:keys [config data settings]}]
  (->> (read-map config (some-> settings read-settings))
       (resolve-paths data)
       only-pure-functions
       bounded
       checked))

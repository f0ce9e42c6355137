(ns front.start-failure
  "The reason why a node did not start: a code and a message on one line."
  (:require [clojure.string :as str]
            [front.config :as config]
            [xtdb.codec :as c])
  (:import (java.net BindException)
           (xtdb.api IndexVersionOutOfSyncException)))

(set! *warn-on-reflection* true)

(defn- causes [^Throwable e]
  (take 20 (take-while some? (iterate #(.getCause ^Throwable %) e))))

(defn- messages [e]
  (str/join " | " (keep ex-message (causes e))))

(defn rocksdb?
  "Whether an exception comes from RocksDB."
  [e]
  (some #(str/starts-with? (.getName (class %)) "org.rocksdb.") (causes e)))

(def lock-held-code 75)
(def failed-code 70)

(defn- storage-failure
  "The meaning of RocksDB's message. RocksDB has no code for most kinds of damage, so every unknown message means damage."
  [e said]
  (cond
    (re-find #"(?i)no space left|disk quota" said) :no-space
    (not (rocksdb? e)) nil
    (re-find #"(?i)lock file|lock hold" said) :locked
    (re-find #"(?i)permission denied|read-only file system|too many open files" said) :start-failed
    (re-find #"(?i)newer version|unsupported|not supported|unknown" said) :newer-data
    :else :corrupt-data))

(defn- other-index-version [e]
  (first (filter #(instance? IndexVersionOutOfSyncException %) (causes e))))

(defn- index-message [e]
  (str "The index was made by another version of XTDB (" (ex-message e) "; this one makes " c/index-version
       "). An older one is rebuilt after its folder is removed; a newer one needs that newer version"))

(defn- trouble-of
  "The code of a shared log's refusal of this node."
  [e]
  (some (comp :front/trouble ex-data) (causes e)))

(defn- trouble-message [e]
  (ex-message (first (filter (comp :front/trouble ex-data) (causes e)))))

(defn reason
  "`{:code :message :exit}` for the failure of the start."
  [^Throwable e]
  (let [said (messages e)
        storage (storage-failure e said)
        [code message] (cond
                         (config/invalid? e) [:config-invalid (ex-message e)]
                         (trouble-of e) [(trouble-of e) (trouble-message e)]
                         (other-index-version e) [:newer-data (index-message (other-index-version e))]
                         (= :locked storage) [:start-failed said]
                         storage [storage said]
                         (:front/ahead (ex-data e)) [:corrupt-data said]
                         (:front/bind (ex-data e)) [:bind-failed said]
                         (some #(instance? BindException %) (causes e)) [:bind-failed said]
                         (some #(instance? xtdb.IllegalArgumentException %) (causes e)) [:config-invalid said]
                         :else [:start-failed (if (str/blank? said) (str (class e)) said)])]
    {:code (name code)
     :message (str/replace message #"\s+" " ")
     :exit (if (= :locked storage) lock-held-code failed-code)}))

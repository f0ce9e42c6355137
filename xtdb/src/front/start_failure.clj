(ns front.start-failure
  "Why a node did not start: a code and a message for one line."
  (:require [clojure.string :as str]
            [front.config :as config]
            [xtdb.codec :as c])
  (:import (java.net BindException)
           (org.rocksdb RocksDBException Status Status$Code)
           (xtdb.api IndexVersionOutOfSyncException)))

(set! *warn-on-reflection* true)

(defn- causes [^Throwable e]
  (take 20 (take-while some? (iterate #(.getCause ^Throwable %) e))))

(defn- messages [e]
  (str/join " | " (keep ex-message (causes e))))

(defn- rocksdb? [e]
  (some #(str/starts-with? (.getName (class %)) "org.rocksdb.") (causes e)))

(defn- corruption? [e]
  (some #(and (instance? RocksDBException %)
              (when-let [^Status status (.getStatus ^RocksDBException %)]
                (= Status$Code/Corruption (.getCode status))))
        (causes e)))

(def lock-held-code 75)
(def failed-code 70)

(defn- storage-failure [e said]
  (cond
    (re-find #"(?i)no space left|disk quota|IO error.*\bspace\b" said) :no-space
    (not (rocksdb? e)) nil
    (re-find #"(?i)lock file|lock hold" said) :locked
    (re-find #"(?i)unsupported|not supported|unknown (format|version|option)|newer version|unrecognized|NotImplemented|Not implemented" said) :newer-data
    (corruption? e) :corrupt-data
    ;; RocksDB tells some damage as a wrong argument or a failed read: a log without its CURRENT file, a MANIFEST that is gone.
    (re-find #"(?i)corrupt|checksum|bad magic|mismatch|missing|no such file|does not exist|truncated|existing log file" said) :corrupt-data))

(defn- other-index-version [e]
  (first (filter #(instance? IndexVersionOutOfSyncException %) (causes e))))

(defn- index-message [e]
  (str "The index was made by another version of XTDB (" (ex-message e) "; this one makes " c/index-version
       "). An older one is rebuilt after its folder is removed; a newer one needs that newer version"))

(defn reason
  "`{:code :message :exit}` for what stopped the start."
  [^Throwable e]
  (let [said (messages e)
        storage (storage-failure e said)
        [code message] (cond
                         (config/invalid? e) [:config-invalid (ex-message e)]
                         (other-index-version e) [:newer-data (index-message (other-index-version e))]
                         (= :locked storage) [:start-failed said]
                         storage [storage said]
                         (:front/bind (ex-data e)) [:bind-failed said]
                         (some #(instance? BindException %) (causes e)) [:bind-failed said]
                         (some #(instance? xtdb.IllegalArgumentException %) (causes e)) [:config-invalid said]
                         :else [:start-failed (if (str/blank? said) (str (class e)) said)])]
    {:code (name code)
     :message (str/replace message #"\s+" " ")
     :exit (if (= :locked storage) lock-held-code failed-code)}))

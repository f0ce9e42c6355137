(ns front.checked-store
  "RocksDB's store with iterators that throw if RocksDB could not read, and without preallocated disk space. To XTDB, an iterator that has met damage looks like
  one that has reached its end, so it would answer with only the data before the damage."
  (:require [xtdb.checkpoint :as cp]
            [xtdb.io :as xio]
            [xtdb.kv :as kv]
            [xtdb.rocksdb :as rocksdb]
            [xtdb.system :as sys])
  (:import (java.io Closeable)
           (java.util Iterator Map)
           (org.rocksdb DBOptions RocksDB RocksIterator)
           (xtdb.kv KvSnapshotPrefixSupport)
           (xtdb.rocksdb RocksKvIterator)))

(set! *warn-on-reflection* true)

(defn- or-damage
  "The found value. Throws RocksDBException if nothing was found because the data could not be read."
  [^RocksKvIterator iterator found]
  (when (nil? found)
    (let [^Iterator all (.iterator (.values ^Map (.-is iterator)))]
      (while (.hasNext all)
        (.status ^RocksIterator (.next all)))))
  found)

(deftype ^:private CheckedIterator [^RocksKvIterator iterator]
  kv/KvIterator
  (seek [_ k] (or-damage iterator (kv/seek iterator k)))
  (next [_] (or-damage iterator (kv/next iterator)))
  (prev [_] (or-damage iterator (kv/prev iterator)))
  (value [_] (kv/value iterator))
  Closeable
  (close [_] (.close iterator)))

(deftype ^:private CheckedSnapshot [^Closeable snapshot]
  kv/KvSnapshot
  (new-iterator [_] (->CheckedIterator (kv/new-iterator snapshot)))
  (get-value [_ k] (kv/get-value snapshot k))
  KvSnapshotPrefixSupport
  (newPrefixSeekOptimisedIterator [_] (->CheckedIterator (kv/new-prefix-seek-optimised-iterator snapshot)))
  Closeable
  (close [_] (.close snapshot)))

(deftype ^:private CheckedTx [^Closeable tx]
  kv/KvStoreTx
  (new-tx-snapshot [_] (->CheckedSnapshot (kv/new-tx-snapshot tx)))
  (abort-kv-tx [_] (kv/abort-kv-tx tx))
  (commit-kv-tx [_] (kv/commit-kv-tx tx))
  (put-kv [_ k v] (kv/put-kv tx k v))
  Closeable
  (close [_] (.close tx)))

(defrecord ^:private CheckedStore [store]
  kv/KvStoreWithReadTransaction
  (begin-kv-tx [_] (->CheckedTx (kv/begin-kv-tx store)))
  kv/KvStore
  (new-snapshot [_] (->CheckedSnapshot (kv/new-snapshot store)))
  (store [_ kvs] (kv/store store kvs))
  (fsync [_] (kv/fsync store))
  (compact [_] (kv/compact store))
  (count-keys [_] (kv/count-keys store))
  (db-dir [_] (kv/db-dir store))
  (kv-name [_] (kv/kv-name store))
  cp/CheckpointSource
  (save-checkpoint [_ dir] (cp/save-checkpoint store dir))
  Closeable
  (close [_] (xio/try-close store)))

(defn- db-options
  "The options with which `xtdb.rocksdb` opens a database, except that files grow as they are written. By default RocksDB preallocates 74 MB for each log
  and 4 MB for each manifest. On a full disk, the logs of both stores continued in that space, and the next start found no space for its new files."
  ^DBOptions []
  (RocksDB/loadLibrary)
  (doto (DBOptions.)
    (.setMaxBackgroundJobs (max 2 (dec (.availableProcessors (Runtime/getRuntime)))))
    (.setAllowFAllocate false)))

(defn ->kv-store
  "A store of `xtdb.rocksdb`, with the same options."
  [options]
  (->CheckedStore (rocksdb/->kv-store (update options :db-options #(or % (db-options))))))

(alter-meta! #'->kv-store merge (select-keys (meta #'rocksdb/->kv-store) [::sys/deps ::sys/args]))

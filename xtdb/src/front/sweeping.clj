(ns front.sweeping
  "Rewrites the files of a node's stores, so that they no longer contain any part of evicted documents.

  XTDB's eviction leaves the values of more than 224 bytes in the index, and RocksDB keeps deleted bytes in its files until it happens to rewrite them.
  The sweep runs before the node opens for good: nothing else may use the files, and RocksDB writes a new manifest only when it opens. The old
  manifest names keys."
  (:require [clojure.java.io :as io]
            [clojure.string :as str]
            [clojure.tools.logging :as log]
            [xtdb.codec :as c]
            [xtdb.io :as xio]
            [xtdb.kv.tx-log :as tx-log]
            [xtdb.memory :as mem])
  (:import (java.io File)
           (java.nio.file Files LinkOption Path)
           (java.util Arrays HashSet List Set)
           (org.rocksdb ColumnFamilyDescriptor ColumnFamilyHandle ColumnFamilyOptions CompactRangeOptions CompactRangeOptions$BottommostLevelCompaction
                        CompressionType DBOptions FlushOptions Options RocksDB RocksIterator)))

(set! *warn-on-reflection* true)

(defn- family-options
  "The options of `xtdb.rocksdb`, so that rewritten files are like the others."
  ^ColumnFamilyOptions []
  (doto (ColumnFamilyOptions.)
    (.setCompressionType CompressionType/LZ4_COMPRESSION)
    (.setBottommostCompressionType CompressionType/ZSTD_COMPRESSION)))

(defn- with-store
  "Calls `f` with the open database of a folder and its column families, the default one first."
  [^Path folder f]
  (RocksDB/loadLibrary)
  (with-open [options (Options.)
              db-options (doto (DBOptions.) (.setAllowFAllocate false))
              family-options (family-options)]
    (let [names (RocksDB/listColumnFamilies options (str folder))
          handles (java.util.ArrayList.)
          descriptors (mapv #(ColumnFamilyDescriptor. ^bytes % family-options) names)]
      (with-open [db (RocksDB/open db-options (str folder) ^List descriptors ^List handles)]
        (try
          (f db (vec handles))
          (finally
            (run! #(.close ^ColumnFamilyHandle %) handles)))))))

(defn- starts-with? [^bytes whole ^bytes prefix]
  (and (>= (alength whole) (alength prefix))
       (Arrays/equals whole 0 (alength prefix) prefix 0 (alength prefix))))

(defn- joined ^bytes [first-byte ^bytes more]
  (let [all (byte-array (inc (alength more)))]
    (aset-byte all 0 (byte first-byte))
    (System/arraycopy more 0 all 1 (alength more))
    all))

(defn- each-key!
  "Calls `f` with every key that begins with the byte `index`, in order, and with the iterator at it."
  [^RocksDB db index f]
  (let [prefix (byte-array [index])]
    (with-open [^RocksIterator keys (.newIterator db)]
      (.seek keys prefix)
      (while (and (.isValid keys) (starts-with? (.key keys) prefix))
        (f (.key keys) keys)
        (.next keys))
      ;; An iterator that has met damage looks like one at its end.
      (.status keys))))

(def ^:private value-length
  "The part of a separately stored value's key after the byte of the index."
  c/id-size)

(defn- drop-unowned!
  "Removes the separately stored values of entities without any version. Returns their number."
  [^RocksDB db]
  (let [dropped (volatile! 0)]
    (with-open [^RocksIterator owned (.newIterator db)]
      (each-key! db c/hash-cache-index-id
                 (fn [^bytes k _]
                   (let [entity (Arrays/copyOfRange k (int (min (alength k) (inc value-length))) (alength k))]
                     ;; The name of an attribute belongs to no entity.
                     (when (pos? (alength entity))
                       (let [versions (joined c/ecav-index-id entity)]
                         (.seek owned versions)
                         (when-not (and (.isValid owned) (starts-with? (.key owned) versions))
                           (.status owned)
                           (.delete db k)
                           (vswap! dropped inc))))))))
    @dropped))

(defn- id-text [id]
  (mem/buffer->hex (c/->id-buffer id)))

(defn- events [entry]
  (:xtdb.tx.event/tx-events (xio/conform-tx-log-entry {} entry)))

(defn- thawed [^RocksIterator at]
  (mem/<-nippy-buffer (mem/as-buffer (.value at))))

(defn- logged-documents
  "The hashes of all documents that the log of a store names. Nil if the log has an operation that is unknown here."
  [^RocksDB db]
  (let [found (HashSet.)
        known? (volatile! true)]
    (xio/with-nippy-thaw-all
      (each-key! db c/tx-events-index-id
                 (fn [_ at]
                   (doseq [[op _ one two] (events (thawed at))]
                     (case op
                       (:crux.tx/put :crux.tx/match) (when one (.add found (id-text one)))
                       :crux.tx/cas (run! #(when % (.add found (id-text %))) [one two])
                       (:crux.tx/delete :crux.tx/evict) nil
                       (vreset! known? false))))))
    (when @known? found)))

(defn- evicted-entities ^Set [^RocksDB db]
  (let [found (HashSet.)]
    (each-key! db c/tx-events-index-id
               (fn [_ at]
                 (doseq [[op entity] (events (thawed at)) :when (= :crux.tx/evict op)]
                   (.add found (id-text entity)))))
    found))

(defn- logged-time [^bytes k]
  (:xtdb.api/tx-time (tx-log/decode-tx-event-key-from (mem/as-buffer k))))

(defn- as-deletions
  "The events of a transaction with each eviction as deletions from the times at which the entity had versions, and the times by entity after it."
  [tx-events time times]
  (reduce (fn [[done times] [op entity _ start :as event]]
            (case op
              :crux.tx/put [(conj done event) (cond-> times
                                                (contains? times (id-text entity)) (update (id-text entity) conj (or start time)))]
              :crux.tx/evict [(into done (map (fn [at] [:crux.tx/delete entity at])) (sort (get times (id-text entity))))
                              (assoc times (id-text entity) #{})]
              [(conj done event) times]))
          [[] times]
          tx-events))

(defn- write-deletions!
  "Writes each eviction in the log as deletions. The evicted documents are already gone from the document store. When an index is rebuilt from the log,
  an eviction would also remove equal documents that were put later, such as the same text under its hash."
  [^RocksDB db]
  (xio/with-nippy-thaw-all
    (let [evicted (evicted-entities db)]
      (when-not (.isEmpty evicted)
        (let [times (volatile! (zipmap evicted (repeat #{})))]
          (each-key! db c/tx-events-index-id
                     (fn [^bytes k at]
                       (let [entry (thawed at)
                             before (events entry)
                             [after all] (as-deletions before (logged-time k) @times)]
                         (vreset! times all)
                         (when (not= before after)
                           (.put db k (mem/->on-heap (mem/->nippy-buffer
                                                      (if (map? entry) (assoc entry :xtdb.tx.event/tx-events after) after)))))))))))))

(defn- drop-unlogged!
  "Removes the documents that no transaction names: a node stored them and was killed before their transaction reached the log. Returns their number."
  [^RocksDB db]
  (let [dropped (volatile! 0)]
    (when-let [^Set logged (logged-documents db)]
      (when-not (.isEmpty logged)
        (each-key! db c/content-hash->doc-index-id
                   (fn [^bytes k _]
                     (when-not (.contains logged (mem/buffer->hex (mem/as-buffer (Arrays/copyOfRange k 1 (alength k)))))
                       (.delete db k)
                       (vswap! dropped inc))))))
    @dropped))

(defn- rewrite!
  "Rewrites every file of a database without the deleted data."
  [^RocksDB db families]
  (with-open [flush (doto (FlushOptions.) (.setWaitForFlush true))
              whole (doto (CompactRangeOptions.)
                      (.setBottommostLevelCompaction CompactRangeOptions$BottommostLevelCompaction/kForce)
                      (.setExclusiveManualCompaction true))]
    (.flush db flush ^List families)
    (doseq [^ColumnFamilyHandle family families]
      (.compactRange db family nil nil whole))))

(defn- delete-tree! [^File file]
  (run! io/delete-file (reverse (file-seq file))))

(defn- folder [^Path data name]
  (let [found (.resolve data ^String name)]
    (when (Files/isDirectory found (make-array LinkOption 0)) found)))

(defn- drop-messages!
  "RocksDB's log names keys of the files that it rewrote."
  [^Path store]
  (doseq [^File file (.listFiles (.toFile store))
          :when (str/starts-with? (.getName file) "LOG")]
    (io/delete-file file)))

(defn ordered?
  "Whether a sweep was ordered."
  [{:keys [^Path sweep]}]
  (boolean (and sweep (Files/exists sweep (make-array LinkOption 0)))))

(defn sweep!
  "Rewrites the stores of a data folder that no node has open, then removes the order. If the process is killed before, the next start repeats the whole sweep."
  [{:keys [^Path data ^Path sweep]}]
  (when-let [golden (folder data "golden")]
    (with-store golden (fn [db families]
                         (write-deletions! db)
                         (log/info "Sweep:" (drop-unlogged! db) "documents without a transaction")
                         (rewrite! db families)))
    (drop-messages! golden))
  (when-let [index (folder data "index")]
    (with-store index (fn [db families]
                        (log/info "Sweep:" (drop-unowned! db) "values without an entity")
                        (rewrite! db families)))
    (drop-messages! index))
  ;; The checkpoint's files are hard links to files that the index had.
  (some-> (folder data "checkpoint") .toFile delete-tree!)
  (Files/delete sweep))

(ns front.documents
  "A document store that counts the documents fetched for a request, with a cache that is limited by size instead of number."
  (:require [front.allowance :as allowance]
            [front.deadline :as deadline]
            [front.size :as size]
            [xtdb.db :as db]
            [xtdb.io :as xio]
            [xtdb.system :as sys])
  (:import (java.io Closeable)
           (java.util LinkedHashMap Map$Entry)
           (xtdb.cache ICache)))

(set! *warn-on-reflection* true)

(defn- counted-fetch [store ids]
  (into {}
        (mapcat (fn [id]
                  (deadline/check!)
                  (let [found (db/fetch-docs store [id])]
                    (doseq [document (vals found)]
                      (allowance/found! (size/measure document Integer/MAX_VALUE)))
                    found)))
        ids))

(defrecord ^:private CountedDocuments [store]
  db/DocumentStore
  (submit-docs [_ id-and-docs] (db/submit-docs store id-and-docs))
  (fetch-docs [_ ids]
    ;; A request fetches one document at a time, so that it is stopped before it has too many. The indexer needs all of its documents together.
    (if (allowance/limited?) (counted-fetch store ids) (db/fetch-docs store ids)))
  Closeable
  (close [_] (xio/try-close store)))

(defn ->document-store
  "The store of another module, counted."
  {::sys/deps {:store :front/documents}}
  [{:keys [store]}]
  (->CountedDocuments store))

;; Entries are [value size], in the order of their last use.

(defn- most-held ^long []
  (quot (.maxMemory (Runtime/getRuntime)) 16))

(defn- drop-oldest! [^LinkedHashMap entries ^longs held]
  (let [oldest (.iterator (.entrySet entries))]
    (while (and (> (aget held 0) (most-held)) (.hasNext oldest))
      (let [[_ size] (.getValue ^Map$Entry (.next oldest))]
        (.remove oldest)
        (aset held 0 (- (aget held 0) (long size)))))))

(defn- forget! [^LinkedHashMap entries ^longs held k]
  (when-let [[_ size] (.remove entries k)]
    (aset held 0 (- (aget held 0) (long size)))))

(deftype ^:private SizedCache [^LinkedHashMap entries ^longs held ^long most-entries]
  ICache
  (computeIfAbsent [this k stored-key-fn f]
    (let [cached (.valAt this k ::absent)]
      (if-not (identical? ::absent cached)
        cached
        (let [k (stored-key-fn k)
              v (f k)
              size (size/measure v (quot (most-held) 4))]
          (when (<= size (quot (most-held) 4))
            (locking entries
              (forget! entries held k)
              (.put entries k [v size])
              (aset held 0 (+ (aget held 0) size))
              (when (> (.size entries) most-entries)
                (forget! entries held (.next (.iterator (.keySet entries)))))
              (drop-oldest! entries held)))
          v))))
  (evict [_ k] (locking entries (forget! entries held k)))
  (valAt [this k] (.valAt this k nil))
  (valAt [_ k absent]
    (locking entries
      (if-let [[v] (.get entries k)] v absent)))
  (count [_] (locking entries (.size entries)))
  (close [_]
    (locking entries
      (.clear entries)
      (aset held 0 0))))

(defn ->cache
  "A cache of at most `cache-size` documents that together take at most a sixteenth of the heap. It drops the least recently used first."
  {::sys/args {:cache-size {:doc "Cache size", :default 1024, :spec ::sys/nat-int}}}
  [{:keys [cache-size]}]
  (SizedCache. (LinkedHashMap. 16 0.75 true) (long-array 1) (long cache-size)))

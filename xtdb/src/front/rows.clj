(ns front.rows
  "The items of an answer as they are found. They are counted, and their cursor is closed right after the last one."
  (:require [front.allowance :as allowance]
            [front.refusal :as refusal])
  (:import (java.io Closeable)
           (java.util Iterator)))

(set! *warn-on-reflection* true)

(defrecord Rows [^Iterator items ^Closeable source]
  Closeable
  (close [_] (.close source)))

(defn- closing-once ^Closeable [^Closeable source]
  (let [closed? (atom false)]
    (reify Closeable
      (close [_]
        (when (compare-and-set! closed? false true)
          (.close source))))))

(defn- too-many [limit]
  (refusal/illegal-argument :too-many-rows (str "More than " limit " rows; add :limit or narrow the query")))

(defn from-cursor
  "The items of an XTDB cursor, each transformed by `f`. With `limit`, throws a 400 refusal at the first item beyond it.
  The cursor is closed before the end is reported, so a query has ended before its answer's last byte is sent."
  [^Iterator cursor f limit]
  (let [source (closing-once cursor)
        seen (volatile! 0)]
    (->Rows (reify Iterator
              (hasNext [_]
                (allowance/row-out!)
                (or (.hasNext cursor)
                    (do (.close source) false)))
              (next [_]
                (when (and limit (> (long (vswap! seen inc)) (long limit)))
                  (throw (too-many limit)))
                (f (.next cursor))))
            source)))

(defn with-first
  "The rows with one more row before them."
  [{:keys [^Iterator items] :as rows} item]
  (let [pending? (volatile! true)]
    (assoc rows :items (reify Iterator
                         (hasNext [_] (or @pending? (.hasNext items)))
                         (next [_]
                           (if @pending?
                             (do (vreset! pending? false) item)
                             (.next items)))))))

(defn mapped
  "The rows, each transformed by `f`."
  [{:keys [^Iterator items] :as rows} f]
  (assoc rows :items (reify Iterator
                       (hasNext [_] (.hasNext items))
                       (next [_] (f (.next items))))))

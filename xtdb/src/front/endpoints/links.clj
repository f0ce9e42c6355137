(ns front.endpoints.links
  "Marks the values in an answer that are ids of entities (`link-entities?`)."
  (:require [front.entity-ref :as entity-ref]
            [xtdb.api :as xt]
            [xtdb.codec :as c]))

(defn- entity? [db v]
  (and (some? v) (c/valid-id? v) (some? (xt/entity-tx db v))))

(defn- link [db v]
  (cond
    (entity? db v) (entity-ref/->EntityRef v)
    (map? v) (update-vals v #(link db %))
    (set? v) (into #{} (map #(link db %)) v)
    (sequential? v) (mapv #(link db %) v)
    :else v))

(defn link-document
  "The document with references in place of ids, except its own id."
  [db document]
  (into {} (map (fn [[k v]] [k (if (= :xt/id k) v (link db v))])) document))

(defn link-row
  "The row with references in place of ids."
  [db row]
  (if (vector? row)
    (mapv #(if (entity? db %) (entity-ref/->EntityRef %) %) row)
    row))

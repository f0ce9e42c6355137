(ns front.endpoints.json-ops
  "Transaction operations in JSON: names and times are text."
  (:require [clojure.instant :as instant]))

(def ^:private time-arguments
  "By operation: which of its arguments are times."
  {"put" [2 3], "delete" [2 3], "match" [3], "cas" [3], "evict" []})

(defn- as-time [v]
  (if (string? v)
    (try (instant/read-instant-date v) (catch Exception _ v))
    v))

(defn from-json
  "The operation with its name as a keyword and its times as instants. Values that are neither stay unchanged for the later checks."
  [[op :as tx-op]]
  (if (and (vector? tx-op) (string? op))
    (reduce (fn [tx-op at]
              (if (some? (get tx-op at)) (update tx-op at as-time) tx-op))
            (assoc tx-op 0 (keyword "xtdb.api" op))
            (get time-arguments op []))
    tx-op))

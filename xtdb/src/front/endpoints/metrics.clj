(ns front.endpoints.metrics
  "The metrics of a node for Prometheus: its state, index, log, memory and disk."
  (:require [clojure.string :as str]
            [front.starting :as starting]
            [xtdb.api :as xt])
  (:import (java.lang.management ManagementFactory)
           (java.nio.file FileStore Files Path)))

(set! *warn-on-reflection* true)

(def ^:private content-type "text/plain; version=0.0.4; charset=utf-8")

(defn- disk-of
  "The free and total bytes of a folder's disk. Nil if there is no folder or the system does not answer."
  [^Path folder]
  (try
    (when folder
      (let [^FileStore store (Files/getFileStore folder)]
        {:free (.getUsableSpace store), :size (.getTotalSpace store)}))
    (catch java.io.IOException _ nil)))

(defn- flag [yes?] (if yes? 1 0))

(defn- state-of [{:keys [starting store-failed]} status]
  (cond
    (or (starting/ingester-failed? status) (realized? store-failed)) "failed"
    (starting) "starting"
    :else "ready"))

(defn- lag
  "The log's steps that are not in the index. The ids of some logs have gaps, so this can exceed the number of transactions."
  [submitted completed]
  (max 0 (- (long (or submitted -1)) (long (or completed -1)))))

(defn- families
  "Every metric: name, type, description, and values by labels. A metric without a value is left out."
  [{:keys [node data store-failed] :as context}]
  (let [status (xt/status node)
        shared (:front/log status)
        ;; A request to a shared log may wait for a server. The last seen value is only seconds old.
        submitted (if shared (:submitted shared) (::xt/tx-id (xt/latest-submitted-tx node)))
        completed (::xt/tx-id (xt/latest-completed-tx node))
        state (state-of context status)
        disk (disk-of data)
        heap (.getHeapMemoryUsage (ManagementFactory/getMemoryMXBean))]
    [["xtdb_node_info" "gauge" "The version of XTDB" {{"version" (:xtdb.version/version status)} 1}]
     ["xtdb_node_state" "gauge" "1 for the state that the node is in"
      (into {} (map (fn [one] [{"state" one} (flag (= one state))])) ["starting" "ready" "failed"])]
     ["xtdb_node_ingester_failed" "gauge" "1 when the indexer is dead or no longer reads the log" {{} (flag (starting/ingester-failed? status))}]
     ["xtdb_node_store_failed" "gauge" "1 when the store has refused a write" {{} (flag (realized? store-failed))}]
     ["xtdb_node_indexed_transaction_id" "gauge" "The newest transaction in the index" {{} completed}]
     ["xtdb_node_submitted_transaction_id" "gauge" "The newest transaction that was seen in the log" {{} submitted}]
     ["xtdb_node_log_lag_transactions" "gauge" "Steps of the log that are not in the index" {{} (lag submitted completed)}]
     ["xtdb_node_log_reachable" "gauge" "Whether the shared log answered when it was asked last" {{} (some-> shared :reachable? flag)}]
     ["xtdb_node_disk_free_bytes" "gauge" "Room on the disk of the data folder" {{} (:free disk)}]
     ["xtdb_node_disk_size_bytes" "gauge" "The size of that disk" {{} (:size disk)}]
     ["xtdb_node_heap_used_bytes" "gauge" "Heap of the JVM in use" {{} (.getUsed heap)}]
     ["xtdb_node_heap_max_bytes" "gauge" "The most that the heap may take" {{} (.getMax heap)}]
     ["process_start_time_seconds" "gauge" "When the process was started, in seconds since 1970"
      {{} (/ (.getStartTime (ManagementFactory/getRuntimeMXBean)) 1000.0)}]]))

(defn- series [metric labels value]
  (let [pairs (map (fn [[k v]] (str k "=\"" v "\"")) labels)]
    (str metric (when (seq pairs) (str "{" (str/join "," pairs) "}")) " " value "\n")))

(defn- family-text [[metric kind what values]]
  (let [known (filter (comp some? val) values)]
    (when (seq known)
      (apply str "# HELP " metric " " what "\n# TYPE " metric " " kind "\n"
             (map (fn [[labels value]] (series metric labels value)) known)))))

(defn metrics
  "GET /metrics, also while the index is behind the log. It never waits."
  [context _]
  {:status 200
   :headers {"Content-Type" content-type}
   :body (str/join (map family-text (families context)))})

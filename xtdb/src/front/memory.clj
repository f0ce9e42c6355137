(ns front.memory
  "The last defence if memory runs short: the query that has taken the most is stopped before the heap is full.

  Single values are limited before they are made. This is for unlimited numbers of rows that are grouped, sorted or passed to an outer query."
  (:require [clojure.tools.logging :as log])
  (:import (com.sun.management ThreadMXBean)
           (java.lang.management ManagementFactory MemoryPoolMXBean MemoryType)))

(set! *warn-on-reflection* true)

(def ^:private look-ms 50)

(def ^:private full-from
  "Queries are stopped once this part of the old generation is in use after a collection."
  0.75)

(def ^:private ^ThreadMXBean threads
  (let [bean (ManagementFactory/getThreadMXBean)]
    (when (and (instance? ThreadMXBean bean) (.isThreadAllocatedMemorySupported ^ThreadMXBean bean)) bean)))

(defn allocated
  "The total bytes that this thread has allocated; 0 if the JVM does not count them."
  ^long [^Thread thread]
  (if threads (.getThreadAllocatedBytes threads (.getId thread)) 0))

(defn- old-generation ^MemoryPoolMXBean []
  (->> (ManagementFactory/getMemoryPoolMXBeans)
       (filter (fn [^MemoryPoolMXBean pool]
                 (and (= MemoryType/HEAP (.getType pool))
                      (.isCollectionUsageThresholdSupported pool)
                      (pos? (.getMax (.getUsage pool))))))
       (sort-by (fn [^MemoryPoolMXBean pool] (.getMax (.getUsage pool))))
       last))

(defn- full? [^MemoryPoolMXBean pool]
  (let [usage (.getCollectionUsage pool)]
    (and usage (> (.getUsed usage) (* (double full-from) (.getMax usage))))))

(defn- taken ^long [{before :allocated, :keys [thread]}]
  (- (allocated thread) (long before)))

(defn- heaviest
  "The query that has taken the most, unless all queries are too small to be the reason."
  [running]
  (when-let [queries (seq running)]
    (let [most (apply max-key taken queries)]
      (when (> (taken most) (quot (.maxMemory (Runtime/getRuntime)) 8)) most))))

(defn- stop-until-gone! [query stop!]
  (log/warn "The heap is nearly full: stopping the query that has taken the most")
  (loop [looks 0]
    (when (and (stop! query) (< looks 200))
      (Thread/sleep (long look-ms))
      (recur (inc looks)))))

(defn watch!
  "Starts to watch whether the heap is nearly full. If it is, calls `stop!` with the heaviest of the `running` queries until `stop!` returns false."
  [running stop!]
  (when-let [pool (old-generation)]
    (doto (Thread. (fn []
                     (while true
                       (Thread/sleep (long look-ms))
                       (when-let [query (and (full? pool) (heaviest running))]
                         (stop-until-gone! query stop!)
                         ;; The usage is that of the last collection. Without a new collection, the next query would be stopped as well.
                         (System/gc))))
                   "front-memory")
      (.setDaemon true)
      (.start))))

(ns front.memory
  "The last line where memory runs short: the query that has taken the most is stopped before the heap is full.

  What single values take is bounded before they are made; this is for rows without number that are grouped, sorted or handed to an outer query."
  (:require [clojure.tools.logging :as log])
  (:import (com.sun.management ThreadMXBean)
           (java.lang.management ManagementFactory MemoryPoolMXBean MemoryType)))

(set! *warn-on-reflection* true)

(def ^:private look-ms 50)

(def ^:private full-from
  "The part of the old generation in use after a collection from which on queries are stopped."
  0.75)

(def ^:private ^ThreadMXBean threads
  (let [bean (ManagementFactory/getThreadMXBean)]
    (when (and (instance? ThreadMXBean bean) (.isThreadAllocatedMemorySupported ^ThreadMXBean bean)) bean)))

(defn allocated
  "How many bytes this thread has ever allocated; 0 where the JVM does not count them."
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
  "The query that has taken the most, unless all of them are too small to be the reason."
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
  "Looks from now on whether the heap is nearly full, and then calls `stop!` with the heaviest of the `running` queries until it returns false."
  [running stop!]
  (when-let [pool (old-generation)]
    (doto (Thread. (fn []
                     (while true
                       (Thread/sleep (long look-ms))
                       (when-let [query (and (full? pool) (heaviest running))]
                         (stop-until-gone! query stop!)
                         ;; The usage is that of the last collection; without another one the next query would be stopped as well.
                         (System/gc))))
                   "front-memory")
      (.setDaemon true)
      (.start))))

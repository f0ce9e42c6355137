(ns front.room
  "The total memory for request bodies in progress. A body reserves its part before it is read and releases it when it is answered.

  A separate part is reserved for small bodies, so that they never wait for large ones."
  (:require [front.refusal :as refusal])
  (:import (java.util.concurrent Semaphore TimeUnit)
           (java.util.concurrent.atomic AtomicInteger)))

(set! *warn-on-reflection* true)

(def ^:private small-up-to
  "The maximum cost of a small body, in bytes."
  1048576)

(def ^:private unit 1024)

(def ^:private longest-wait-ms 10000)

(defrecord ^:private Room [^Semaphore small ^Semaphore large ^long most])

(defn open
  "Room of half the heap: three quarters of it for large bodies."
  []
  (let [units (quot (.maxMemory (Runtime/getRuntime)) (* 2 unit))
        large (quot (* 3 units) 4)]
    (->Room (Semaphore. (int (- units large))) (Semaphore. (int large)) (* large unit))))

(defn- units ^long [^long bytes]
  (inc (quot bytes unit)))

(defrecord ^:private Place [room ^Semaphore part ^AtomicInteger taken])

(defn too-large
  "The refusal of a body that can never fit into this node."
  []
  (refusal/refuse 413 {:error "The body is larger than the memory of this node allows; send it in parts."} {"Connection" "close"}))

(defn take!
  "Reserves room for a body with this cost in bytes, and waits for it up to a time limit. Throws a 413 refusal if the body can never fit, and a 503
  if other bodies hold the room for too long."
  [{:keys [small large ^long most] :as room} ^long cost]
  (let [^Semaphore part (if (<= cost (long small-up-to)) small large)
        n (int (units cost))]
    (when (> cost most) (throw (too-large)))
    (when-not (or (.tryAcquire part n) (.tryAcquire part n longest-wait-ms TimeUnit/MILLISECONDS))
      (throw (refusal/refuse 503 {:error "The bodies of other requests take all the room there is; try again."} {"Retry-After" "1"})))
    (->Place room part (AtomicInteger. n))))

(defn give-back!
  "Releases the room that is still reserved."
  [{:keys [^Semaphore part ^AtomicInteger taken]}]
  (.release part (.getAndSet taken 0)))

(defn exchange!
  "The place of a body whose cost is now known: the same place if its room suffices, or a larger one."
  [{:keys [room ^AtomicInteger taken] :as place} ^long cost]
  (if (<= (units cost) (.get taken))
    place
    (do (give-back! place)
        (take! room cost))))

(ns front.room
  "The memory that request bodies under way may take in sum. A body takes its part before it is read and gives it back when it is answered.

  Small bodies have a part of their own, so that they never wait for large ones."
  (:require [front.refusal :as refusal])
  (:import (java.util.concurrent Semaphore TimeUnit)
           (java.util.concurrent.atomic AtomicInteger)))

(set! *warn-on-reflection* true)

(def ^:private small-up-to
  "What a body may cost, in bytes, that counts as small."
  1048576)

(def ^:private unit 1024)

(def ^:private longest-wait-ms 10000)

(defrecord ^:private Room [^Semaphore small ^Semaphore large ^long most])

(defn open
  "Room in half of the heap: three quarters of it for large bodies."
  []
  (let [units (quot (.maxMemory (Runtime/getRuntime)) (* 2 unit))
        large (quot (* 3 units) 4)]
    (->Room (Semaphore. (int (- units large))) (Semaphore. (int large)) (* large unit))))

(defn- units ^long [^long bytes]
  (inc (quot bytes unit)))

(defrecord ^:private Place [room ^Semaphore part ^AtomicInteger taken])

(defn too-large
  "The refusal of a body that this node has no room for, ever."
  []
  (refusal/refuse 413 {:error "The body is larger than the memory of this node allows; send it in parts."} {"Connection" "close"}))

(defn take!
  "Takes room for a body that costs so many bytes; waits for it within a limit. Throws a 413 refusal when there will never be room for it, a 503
  when others take it for too long."
  [{:keys [small large ^long most] :as room} ^long cost]
  (let [^Semaphore part (if (<= cost (long small-up-to)) small large)
        n (int (units cost))]
    (when (> cost most) (throw (too-large)))
    (when-not (or (.tryAcquire part n) (.tryAcquire part n longest-wait-ms TimeUnit/MILLISECONDS))
      (throw (refusal/refuse 503 {:error "The bodies of other requests take all the room there is; try again."} {"Retry-After" "1"})))
    (->Place room part (AtomicInteger. n))))

(defn give-back!
  "Gives back what is still taken."
  [{:keys [^Semaphore part ^AtomicInteger taken]}]
  (.release part (.getAndSet taken 0)))

(defn exchange!
  "Another place in the room, for a body that costs more than was thought."
  [{:keys [room ^AtomicInteger taken] :as place} ^long cost]
  (if (<= (units cost) (.get taken))
    place
    (do (give-back! place)
        (take! room cost))))

(ns front.allowance
  "The memory allowance of one request: for the documents that it has found and not yet passed on, and for the values that it has made.

  XTDB keeps every value of more than 224 bytes that a clause makes until the query ends, so these values count until then;
  documents count until the next row is written. All requests together may hold a third of the heap."
  (:require [front.refusal :as refusal])
  (:import (java.util.concurrent.atomic AtomicLong)))

(set! *warn-on-reflection* true)

(def ^:private kept-from 224)

(def ^:private place
  "The cost of a value in addition to its size."
  32)

(defn- share ^long [^long parts]
  (quot (.maxMemory (Runtime/getRuntime)) parts))

(defn- most-made ^long [] (share 16))
(defn- most-found ^long [] (share 6))
(defn- most-held ^long [] (share 3))

(def ^:private ^AtomicLong held-by-all (AtomicLong.))

(defprotocol ^:private Holding
  (hold-made! [_ n])
  (hold-found! [_ n])
  (pass-on! [_])
  (give-back! [_]))

(defn- too-much [what ^long limit]
  (refusal/illegal-argument :too-much-memory
                            (str "The query holds more than " limit " characters of " what
                                 " at once; narrow it, or ask for fewer documents at a time with :batch-size")))

(defn- hold-in-all! [^long n]
  (when (> (.addAndGet held-by-all n) (most-held))
    (.addAndGet held-by-all (- n))
    (throw (refusal/refuse 503 {:error "The queries that are running hold as much as the node can spare; try again."} {"Retry-After" "1"}))))

;; One thread at a time uses an allowance; only the sum of all allowances is shared.
(deftype ^:private Allowance [^:unsynchronized-mutable ^long made
                              ^:unsynchronized-mutable ^long found
                              ^:unsynchronized-mutable passed?]
  Holding
  (hold-made! [_ n]
    (hold-in-all! n)
    (set! made (+ made (long n)))
    (when (> made (most-made)) (throw (too-much "values that it made" (most-made)))))
  (hold-found! [_ n]
    (when passed?
      (.addAndGet held-by-all (- found))
      (set! found 0)
      (set! passed? false))
    (hold-in-all! n)
    (set! found (+ found (long n)))
    (when (> found (most-found)) (throw (too-much "documents" (most-found)))))
  (pass-on! [_] (set! passed? true))
  (give-back! [_]
    (.addAndGet held-by-all (- (+ made found)))
    (set! made 0)
    (set! found 0)))

(def ^:private ^:dynamic *allowance* nil)

(defn within
  "Calls `f` with a new allowance, and releases it when `f` ends."
  [f]
  (let [allowance (->Allowance 0 0 false)]
    (try
      (binding [*allowance* allowance] (f))
      (finally (give-back! allowance)))))

(defn limited?
  "Whether this thread works for a request."
  []
  (some? *allowance*))

(defn made!
  "Counts a value of this size that a clause has made. Throws a refusal if the sum is too large."
  [^long n]
  (when (and *allowance* (> n (long kept-from))) (hold-made! *allowance* n)))

(defn held!
  "Counts a value of this size that an aggregate holds, however small. Throws a refusal if the sum is too large."
  [^long n]
  (when *allowance* (hold-made! *allowance* (+ n (long place)))))

(defn found!
  "Counts a document of this size. Throws a refusal if the documents held at the same time are too large."
  [n]
  (when *allowance* (hold-found! *allowance* n)))

(defn row-out!
  "Notes that a row has been passed on: the documents found for it no longer count."
  []
  (when *allowance* (pass-on! *allowance*)))

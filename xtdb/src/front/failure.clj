(ns front.failure
  "Turns an exception into an HTTP answer with XTDB's status codes and error maps."
  (:require [clojure.string :as str]
            [clojure.tools.logging :as log]
            [front.refusal :as refusal]
            [xtdb.codec :as c])
  (:import (java.util Collection Date Map UUID)
           (java.util.concurrent ExecutionException TimeoutException)
           (org.eclipse.jetty.io EofException)
           (xtdb.api NodeOutOfSyncException)
           (xtdb.codec EDNId Id)))

(set! *warn-on-reflection* true)

(def ^:private longest-text 2000)
(def ^:private most-items 50)
(def ^:private deepest 12)

(defn plain
  "The value in types that every EDN reader knows, with long parts shortened.

  XTDB's error maps repeat operations and queries. Their ids and bytes become strings, and so does everything that is not data."
  ([v] (plain v 0))
  ([v depth]
   (let [deeper #(plain % (inc depth))]
     (cond
       (or (nil? v) (boolean? v) (number? v) (keyword? v) (symbol? v)) v
       (instance? UUID v) v
       (instance? Date v) v
       (string? v) (if (> (count v) longest-text) (str (subs v 0 longest-text) "…") v)
       (or (instance? Id v) (instance? EDNId v)) (str v)
       (bytes? v) (deeper (c/base64-writer v))
       (> depth deepest) "…"
       (instance? Map v) (into {} (map (fn [[k item]] [(deeper k) (deeper item)])) (take most-items v))
       (set? v) (into #{} (map deeper) (take most-items v))
       (vector? v) (into [] (map deeper) (take most-items v))
       (or (seq? v) (instance? Collection v)) (apply list (map deeper (take most-items v)))
       :else (deeper (pr-str (class v)))))))

(defn- causes [^Throwable e]
  (take 20 (take-while some? (iterate #(.getCause ^Throwable %) e))))

(defn- known-cause [e]
  (first (filter #(or (instance? xtdb.IllegalArgumentException %)
                      (instance? NodeOutOfSyncException %)
                      (refusal/answer %))
                 (causes e))))

(defn- timeout-cause [e]
  (first (filter #(instance? TimeoutException %) (causes e))))

(defn- unwrapped ^Throwable [^Throwable e]
  (if (and (contains? #{RuntimeException ExecutionException} (class e)) (.getCause e))
    (recur (.getCause e))
    e))

(defn- server-error [e]
  {:status 500, :body {:type "exception", :class (.getName (class (unwrapped e)))}})

(defn- timeout [e]
  (assoc-in (server-error e) [:body :message] (ex-message e)))

(defn answer
  "The answer to a request that ended in this exception."
  [^Throwable e]
  (let [known (known-cause e)]
    (cond
      (some-> known refusal/answer) (update (refusal/answer known) :body plain)
      known {:status 400, :body (plain (ex-data known))}
      (timeout-cause e) (timeout (timeout-cause e))
      ;; Only this thread's own stack overflow counts: one among the causes may be the indexer's, which is not this request's fault.
      (instance? StackOverflowError (unwrapped e))
      {:status 400, :body (:body (refusal/answer (refusal/illegal-argument :too-deep "Nested too deeply")))}
      :else (server-error e))))

(defn- client-gone? [e]
  (some #(instance? EofException %) (causes e)))

(defn- expected? [e]
  (or (known-cause e) (timeout-cause e) (instance? StackOverflowError (unwrapped e))))

(defn- summary [e]
  (let [{:keys [status body]} (answer e)]
    (str/join " " (remove nil? [status
                                (or (:xtdb.error/error-key body) (:class body))
                                (or (:xtdb.error/message body) (:message body))]))))

(defn note!
  "Logs this exception briefly if it matters, never a document or a query: an unexpected exception with its trace,
  or that an answer was cut off. A client that went away is logged as neither."
  [e cut-off?]
  (cond
    (client-gone? e) (log/debug "A client went away")
    (not (expected? e)) (log/error e (if cut-off? "An answer was cut off" "A request failed"))
    cut-off? (log/warn "An answer was cut off:" (summary e))))

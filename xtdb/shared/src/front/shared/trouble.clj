(ns front.shared.trouble
  "A problem with a shared log or its documents, as an exception. A person can act on its code and message."
  (:require [clojure.string :as str])
  (:import (java.sql SQLException SQLRecoverableException SQLTransientException)
           (org.apache.kafka.common.errors RetriableException)))

(set! *warn-on-reflection* true)

(defn trouble
  "An exception with this code: one of :log-unreachable, :log-denied, :log-missing, :log-unfit, :log-mismatch, :newer-data and :older-data."
  ([code message] (trouble code message nil))
  ([code message cause]
   (ex-info message {:front/trouble (name code)} cause)))

(defn causes
  "This exception and its causes, outermost first."
  [^Throwable e]
  (take 20 (take-while some? (iterate #(.getCause ^Throwable %) e))))

(defn said
  "The innermost cause's message, on one line."
  [e]
  (let [^Throwable root (last (causes e))]
    (str/replace (or (ex-message root) (.getSimpleName (class root))) #"\s+" " ")))

(defn- away? [e]
  (or (instance? RetriableException e)
      (instance? SQLTransientException e)
      (instance? SQLRecoverableException e)
      (and (instance? SQLException e)
           ;; Connections; resources, such as too many of them; a server that stops or starts.
           (some? (re-find #"^(?:08|53|57P)" (or (.getSQLState ^SQLException e) ""))))))

(defn unless-away
  "This exception, or `:log-unreachable` if its cause is that a checked server went away."
  [e]
  (let [all (causes e)]
    (if (and (not-any? (comp :front/trouble ex-data) all) (some away? all))
      (trouble :log-unreachable (str "The log or its documents can no longer be reached: " (said e)) e)
      e)))

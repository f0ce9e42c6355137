(ns front.shared.trouble
  "What is the matter with a shared log or its documents, as an exception whose code and message a person can act on."
  (:require [clojure.string :as str])
  (:import (java.sql SQLException SQLRecoverableException SQLTransientException)
           (org.apache.kafka.common.errors RetriableException)))

(set! *warn-on-reflection* true)

(defn trouble
  "An exception of this code, one of :log-unreachable, :log-denied, :log-missing, :log-unfit, :log-mismatch, :newer-data and :older-data."
  ([code message] (trouble code message nil))
  ([code message cause]
   (ex-info message {:front/trouble (name code)} cause)))

(defn causes
  "This exception and what is behind it, outermost first."
  [^Throwable e]
  (take 20 (take-while some? (iterate #(.getCause ^Throwable %) e))))

(defn said
  "What the innermost cause says, on one line."
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
  "This exception; where a server is behind it that went away after it had been found fit, `:log-unreachable` in its place."
  [e]
  (let [all (causes e)]
    (if (and (not-any? (comp :front/trouble ex-data) all) (some away? all))
      (trouble :log-unreachable (str "The log or its documents can no longer be reached: " (said e)) e)
      e)))

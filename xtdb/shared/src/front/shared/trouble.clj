(ns front.shared.trouble
  "What is the matter with a shared log or its documents, as an exception whose code and message a person can act on."
  (:require [clojure.string :as str]))

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

(ns front.bounded
  "The functions of clauses: what they make counts until the query is over."
  (:refer-clojure :only [])
  (:require [front.bounding :as bounding]))

(bounding/define-making bounding/kept!)

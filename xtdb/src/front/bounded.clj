(ns front.bounded
  "The functions for clauses. The values that they make count until the query ends."
  (:refer-clojure :only [])
  (:require [front.bounding :as bounding]))

(bounding/define-making bounding/kept!)

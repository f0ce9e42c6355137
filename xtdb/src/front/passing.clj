(ns front.passing
  "The functions of find expressions whose rows are passed on as they are found: only the single value is bounded."
  (:refer-clojure :only [])
  (:require [front.bounding :as bounding]))

(bounding/define-making clojure.core/identity)

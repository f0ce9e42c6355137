(ns front.passing
  "The functions for find expressions whose rows are passed on as they are found. Only single values are limited."
  (:refer-clojure :only [])
  (:require [front.bounding :as bounding]))

(bounding/define-making clojure.core/identity)

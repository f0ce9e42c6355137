(ns front.entity-ref
  "A value in an answer that is also the id of an entity (`link-entities?`)."
  (:require [front.edn :as edn])
  (:import (java.io Writer)))

(defrecord EntityRef [eid])

(defmethod print-method EntityRef [ref ^Writer w]
  (.write w "#xtdb.http/entity-ref ")
  (edn/write (:eid ref) w))

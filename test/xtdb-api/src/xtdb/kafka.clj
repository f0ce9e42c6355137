(ns xtdb.kafka
  "XTDB's tests ask whether a log is of this class, which is in a module that they are run without.")

(defrecord KafkaTxLog [])

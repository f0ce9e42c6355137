(ns xtdb.kafka
  "XTDB's tests ask whether a log is of this class. Its module is not on the class path here, so this record replaces it.")

(defrecord KafkaTxLog [])

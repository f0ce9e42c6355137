(ns juxt.clojars-mirrors.jsonista.v0v3v5.jsonista.core
  "The part of jsonista that XTDB's tests use, written on data.json: Maven Central does not have XTDB's mirror of jsonista."
  (:require [clojure.data.json :as json])
  (:import (java.util Base64)))

(extend (Class/forName "[B")
  json/JSONWriter
  {:-write (fn [value out options] (json/-write (.encodeToString (Base64/getEncoder) ^bytes value) out options))})

(defn read-value [value]
  (json/read-str (if (string? value) value (slurp value))))

(defn write-value-as-string [value]
  (json/write-str value))

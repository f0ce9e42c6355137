(ns front.shared.secret
  "Secrets that a setting names: in a file, otherwise in an environment variable."
  (:require [clojure.string :as str]
            [front.shared.trouble :as trouble])
  (:import (java.io File IOException)
           (java.nio.file Files)))

(set! *warn-on-reflection* true)

(defn- of-file [^String path]
  (try
    ;; Tools that write such files end them with a line break.
    (str/trim-newline (Files/readString (.toPath (File. path))))
    (catch IOException e
      (throw (trouble/trouble :log-denied (str "The password file " path " cannot be read (" (.getSimpleName (class e)) ")") e)))))

(defn password
  "The password that the settings' `passwordFile` or, without it, `passwordVariable` refers to. Nil if there is neither."
  [{:strs [passwordFile passwordVariable]}]
  (let [text (if passwordFile
               (of-file passwordFile)
               (some-> passwordVariable System/getenv))]
    (when (and passwordFile (str/blank? text))
      (throw (trouble/trouble :log-denied (str "The password file " passwordFile " is empty"))))
    (when-not (str/blank? text) text)))

(ns front.token
  "The file with the bearer token that callers on TCP have to show."
  (:require [clojure.string :as str])
  (:import (java.nio.file CopyOption Files LinkOption OpenOption Path StandardCopyOption)
           (java.nio.file.attribute FileAttribute PosixFilePermissions)
           (java.security SecureRandom)
           (java.util Base64)))

(set! *warn-on-reflection* true)

(defn- random-token []
  (let [bytes (byte-array 32)]
    (.nextBytes (SecureRandom.) bytes)
    (.encodeToString (.withoutPadding (Base64/getUrlEncoder)) bytes)))

(defn make!
  "Makes the file with a random token, for its user alone, unless it is there. A kill at any point leaves all of it or none."
  [^Path file]
  (when-not (Files/exists file (make-array LinkOption 0))
    (let [draft (.resolveSibling file (str (.getFileName file) ".draft"))
          private (PosixFilePermissions/asFileAttribute (PosixFilePermissions/fromString "rw-------"))]
      (Files/deleteIfExists draft)
      (Files/createFile draft (into-array FileAttribute [private]))
      (Files/writeString draft (random-token) (make-array OpenOption 0))
      (Files/move draft file (into-array CopyOption [StandardCopyOption/ATOMIC_MOVE])))))

(defn read!
  "The token in the file. Throws when it is empty."
  [^Path file]
  (let [token (str/trim (Files/readString file))]
    (when (str/blank? token)
      (throw (ex-info (str "The token file " file " is empty") {})))
    token))

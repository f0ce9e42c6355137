(ns front.token
  "The file with the bearer token that requests on TCP need."
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
  "Makes the file with a random token, readable only by its user, unless the file exists. After a kill at any point, the file is complete or absent."
  [^Path file]
  (when-not (Files/exists file (make-array LinkOption 0))
    (let [draft (.resolveSibling file (str (.getFileName file) ".draft"))
          private (PosixFilePermissions/asFileAttribute (PosixFilePermissions/fromString "rw-------"))]
      (Files/deleteIfExists draft)
      (Files/createFile draft (into-array FileAttribute [private]))
      (Files/writeString draft (random-token) (make-array OpenOption 0))
      (Files/move draft file (into-array CopyOption [StandardCopyOption/ATOMIC_MOVE])))))

(defn read!
  "The token in the file. Throws if it is empty."
  [^Path file]
  (let [token (str/trim (Files/readString file))]
    (when (str/blank? token)
      (throw (ex-info (str "The token file " file " is empty") {})))
    token))

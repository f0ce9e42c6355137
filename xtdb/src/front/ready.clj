(ns front.ready
  "The lines on stdout: how far a starting node has come, and where the front listens."
  (:require [front.json :as json]
            [xtdb.node :as node])
  (:import (java.io ByteArrayOutputStream)
           (java.lang ProcessHandle)
           (java.nio.charset StandardCharsets)
           (java.nio.file Path)))

(set! *warn-on-reflection* true)

(defn version
  "XTDB's version."
  []
  (:xtdb.version/version node/xtdb-version))

(defn- json-text [v]
  (let [out (ByteArrayOutputStream.)]
    (json/write v out)
    (.toString out StandardCharsets/UTF_8)))

(defn say!
  "Prints the line for a front that listens."
  [{:keys [socket port]}]
  (println (json-text (array-map :ready true
                                 :pid (.pid (ProcessHandle/current))
                                 :socket (some-> ^Path socket .toAbsolutePath str)
                                 :port (some-> port long)
                                 :version (version))))
  (flush))

(defn say-starting!
  "Prints how far the index of a front that is not ready has come."
  [{:keys [indexed of]}]
  (println (json-text (array-map :starting true, :indexed (long indexed), :of (long of))))
  (flush))

(defn say-failed!
  "Prints that the node takes no more writes, and why."
  [reason]
  (println (json-text (array-map :failed true, :reason reason)))
  (flush))

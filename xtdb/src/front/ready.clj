(ns front.ready
  "The lines on stdout: the progress of a starting node, and the address of the front."
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
  "Prints the line of a listening front."
  [{:keys [socket port]}]
  (println (json-text (array-map :ready true
                                 :pid (.pid (ProcessHandle/current))
                                 :socket (some-> ^Path socket .toAbsolutePath str)
                                 :port (some-> port long)
                                 :version (version))))
  (flush))

(defn say-starting!
  "Prints the index's progress before the front is ready."
  [{:keys [indexed of]}]
  (println (json-text (array-map :starting true, :indexed (long indexed), :of (long of))))
  (flush))

(defn say-failed!
  "Prints that the node accepts no more writes, and the reason."
  [reason]
  (println (json-text (array-map :failed true, :reason reason)))
  (flush))

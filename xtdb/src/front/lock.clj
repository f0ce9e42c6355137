(ns front.lock
  "A kernel lock on a file, held as long as the process lives."
  (:import (java.nio.channels FileChannel OverlappingFileLockException)
           (java.nio.file OpenOption Path StandardOpenOption)))

(set! *warn-on-reflection* true)

(def ^:private open-options
  (into-array OpenOption [StandardOpenOption/CREATE StandardOpenOption/WRITE]))

;; Keeps a reference: an unreferenced channel would be closed, and its lock released.
(defonce ^:private held (atom nil))

(defn take!
  "Takes the lock. True if this process has it now, false if another process holds it."
  [^Path file]
  (let [channel (FileChannel/open file open-options)
        lock (try (.tryLock channel) (catch OverlappingFileLockException _ nil))]
    (if lock
      (do (reset! held lock) true)
      (do (.close channel) false))))

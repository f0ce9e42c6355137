(ns front.lock
  "A kernel lock on a file, held as long as the process lives."
  (:import (java.nio.channels FileChannel OverlappingFileLockException)
           (java.nio.file OpenOption Path StandardOpenOption)))

(set! *warn-on-reflection* true)

(def ^:private open-options
  (into-array OpenOption [StandardOpenOption/CREATE StandardOpenOption/WRITE]))

;; Held here as well: a channel that nothing refers to is closed, and the lock with it.
(defonce ^:private held (atom nil))

(defn take!
  "Whether the lock is ours now; false when another process holds it."
  [^Path file]
  (let [channel (FileChannel/open file open-options)
        lock (try (.tryLock channel) (catch OverlappingFileLockException _ nil))]
    (if lock
      (do (reset! held lock) true)
      (do (.close channel) false))))

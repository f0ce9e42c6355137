(ns front.arrival
  "Receives request bodies. No thread waits for an incomplete body, so slow clients occupy no threads."
  (:require [front.activity :as activity]
            [front.pace :as pace])
  (:import (java.io ByteArrayOutputStream)
           (java.nio ByteBuffer)
           (java.util.concurrent.atomic AtomicLong)
           (java.util.function Consumer)
           (org.eclipse.jetty.io Content$Chunk)
           (org.eclipse.jetty.server Request Request$Wrapper)))

(set! *warn-on-reflection* true)

(def ^:private most-kept
  "The bytes of one body that are received without a thread. The thread that answers reads the rest of a larger body."
  1048576)

(def ^:private most-kept-by-all
  "The total bytes of incomplete bodies that are kept without a thread. Beyond it, a thread reads each further body."
  33554432)

(def ^:private ^AtomicLong kept-by-all (AtomicLong.))

(defn- with-beginning
  "The request with its received bytes first in its content. `end` is the chunk after them; nil while there may be more."
  ^Request [^Request request ^bytes beginning ^Content$Chunk end]
  (let [put-back (atom (when (pos? (alength beginning)) (Content$Chunk/from (ByteBuffer/wrap beginning) false)))]
    (proxy [Request$Wrapper] [request]
      (read []
        (if-let [chunk @put-back]
          (do (reset! put-back nil) chunk)
          (or end (.read request))))
      (demand [^Runnable demand]
        (if (or @put-back end)
          (.run demand)
          (.demand request demand))))))

(defn- keep!
  "Copies the content of a chunk. Returns the number of bytes."
  ^long [^ByteArrayOutputStream kept ^Content$Chunk chunk]
  (let [^ByteBuffer buffer (.getByteBuffer chunk)
        bytes (byte-array (.remaining buffer))]
    (.get buffer bytes)
    (.release chunk)
    (.write kept bytes 0 (alength bytes))
    (.addAndGet kept-by-all (alength bytes))
    (alength bytes)))

(defn- step!
  "Takes the received part of a body. Returns the chunk that ends the body, or :enough if no more is kept. Returns nil if bytes are missing; `again` is
  called when more arrive. Throws the failure that cut a body off: a request without its complete body gets no thread."
  [^Request request kept started ^AtomicLong size ^Runnable again]
  (loop []
    (let [^Content$Chunk chunk (.read request)]
      (cond
        (nil? chunk) (do (.demand request again) nil)
        (Content$Chunk/isFailure chunk) (throw (.getFailure chunk))
        :else (let [last? (.isLast chunk)
                    total (.addAndGet size (keep! kept chunk))]
                (pace/check! started total)
                (cond
                  last? Content$Chunk/EOF
                  (or (>= total (long most-kept)) (> (.get kept-by-all) (long most-kept-by-all))) :enough
                  :else (recur)))))))

(defn when-arrived!
  "Calls `f` with the request once its body, or the part of it that is kept, has arrived. The calling thread must not wait. Calls `fail` with the failure:
  a 408 refusal for a body that comes too slowly, the failure that cut a body off, or whatever `f` throws."
  [^Request request f fail]
  (let [kept (ByteArrayOutputStream.)
        size (AtomicLong.)
        started (System/nanoTime)
        reader (reify Runnable
                 (run [this]
                   (try
                     (when-let [end (step! request kept started size this)]
                       (f (with-beginning request (.toByteArray kept) (when-not (= :enough end) end))))
                     (catch Throwable e (fail e)))))]
    (activity/transfers! request true)
    (Request/addCompletionListener request (reify Consumer
                                             (accept [_ _failure] (.addAndGet kept-by-all (- (.get size))))))
    (.run reader)))

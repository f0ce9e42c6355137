(ns front.arrival
  "Request bodies on their way: no thread waits for one before it is there, so that clients that send slowly take no threads from others."
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
  "How many bytes of one body are waited for; the rest of a larger one is read by the thread that answers."
  1048576)

(def ^:private most-kept-by-all
  "How many bytes of bodies that are not there yet are kept in sum; beyond that each is read by a thread."
  33554432)

(def ^:private ^AtomicLong kept-by-all (AtomicLong.))

(defn- with-beginning
  "The request with the bytes that were read of it put back; `end` is the chunk that came after them, nil while there may be more."
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
  "Copies what a chunk holds; the number of bytes."
  ^long [^ByteArrayOutputStream kept ^Content$Chunk chunk]
  (let [^ByteBuffer buffer (.getByteBuffer chunk)
        bytes (byte-array (.remaining buffer))]
    (.get buffer bytes)
    (.release chunk)
    (.write kept bytes 0 (alength bytes))
    (.addAndGet kept-by-all (alength bytes))
    (alength bytes)))

(defn- step!
  "Takes what is there of a body. Answers the chunk that ends it, :enough where no more is kept, or nil when `again` is called once more has come. Throws
  what a body broke off with: a request without its body takes no thread."
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
  "Calls `f` with the request once its body is there, or so much of it as is kept; on a thread that must not wait. `fail` is called with what went wrong:
  a 408 refusal for a body that comes too slowly, the failure of one that breaks off, and whatever `f` throws."
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

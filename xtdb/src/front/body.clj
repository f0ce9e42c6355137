(ns front.body
  "Request bodies: read within a limit, decoded by their Content-Type."
  (:require [front.format :as format]
            [front.pace :as pace]
            [front.refusal :as refusal]
            [front.room :as room]
            [front.scan :as scan])
  (:import (java.io ByteArrayOutputStream InputStream)
           (java.util Arrays)
           (java.util.function Consumer)
           (org.eclipse.jetty.http HttpFields HttpHeader)
           (org.eclipse.jetty.server Request)))

(set! *warn-on-reflection* true)

(def ^:private discard-factor
  "Up to this multiple of the limit is read and thrown away, so that a client that is still sending can see the 413."
  4)

(def ^:private discard-seconds 10)

(defn- too-large [max-body]
  (refusal/refuse 413 {:error (str "The body is larger than " max-body " bytes.")} {"Connection" "close"}))

(defn- discard! [^InputStream in ^long limit]
  (let [buffer (byte-array 65536)
        deadline (+ (System/nanoTime) (* discard-seconds 1000000000))]
    (loop [left limit]
      (when (and (pos? left) (neg? (- (System/nanoTime) deadline)))
        (let [n (.read in buffer)]
          (when (pos? n) (recur (- left n))))))))

(def ^:private cost-of-byte
  "The memory that a byte of a body takes: as received, as text, and as the strings of its values, some with two bytes for each character."
  4)

(def ^:private cost-of-part
  "The memory that a value takes in addition to its text."
  64)

(defn- declared-length ^long [^Request request]
  (.getLongField ^HttpFields (.getHeaders request) HttpHeader/CONTENT_LENGTH))

(defn- read-exactly ^bytes [^InputStream in ^long length]
  (let [body (byte-array length)
        started (System/nanoTime)]
    (loop [total 0]
      (let [n (long (if (= total length) -1 (.read in body (int total) (int (- length total)))))]
        (if (neg? n)
          (if (= total length) body (Arrays/copyOf body (int total)))
          (do (pace/check! started (+ total n))
              (recur (+ total n))))))))

(defn- read-counted
  "A body of unknown length."
  ^bytes [^InputStream in ^long max-body grow!]
  (let [out (ByteArrayOutputStream.)
        buffer (byte-array 65536)
        started (System/nanoTime)]
    (loop [total 0]
      (let [n (.read in buffer)]
        (cond
          (neg? n) (.toByteArray out)
          (> (+ total n) max-body) (do (discard! in (* discard-factor max-body))
                                       (throw (too-large max-body)))
          :else (do (pace/check! started (+ total n))
                    (grow! (+ total n))
                    (.write out buffer 0 n)
                    (recur (+ total n))))))))

(defn- read-bytes
  "The bytes of the body. `place` (an atom) is the room that the body takes before it is read."
  ^bytes [^Request request ^long max-body place]
  (let [length (declared-length request)
        exchange! (fn [^long cost] (swap! place room/exchange! cost))]
    (with-open [in (Request/asInputStream request)]
      (cond
        (> length max-body) (do (discard! in (* discard-factor max-body))
                                (throw (too-large max-body)))
        (neg? length) (read-counted in max-body (fn [^long total] (exchange! (* total (long cost-of-byte)))))
        :else (do (exchange! (* length (long cost-of-byte)))
                  (read-exactly in length))))))

(defn- take-place! [^Request request room]
  (let [place (atom (room/take! room 0))]
    (Request/addCompletionListener request (reify Consumer (accept [_ _failure] (room/give-back! @place))))
    place))

(defn- not-decoded []
  (refusal/coercion :body-params "map?" nil [{:path [], :in [], :via [], :pred "map?", :val nil}]))

(defn- decoded [decode body content-type]
  (try
    (decode body)
    (catch StackOverflowError _ (throw (refusal/malformed content-type)))
    (catch Exception e (throw (or (refusal/within e) (refusal/malformed content-type))))))

(defn read-value
  "The body as a value. `accepted` are the media types this endpoint decodes.
  Throws 413 if it is too large, 503 if there is no room for it now, 408 if it comes too slowly, 400 if it is malformed, empty, or of
  another type."
  [^Request request accepted {:keys [max-body room]}]
  (let [content-type (format/media-type (.get ^HttpFields (.getHeaders request) HttpHeader/CONTENT_TYPE))
        place (take-place! request room)
        body (read-bytes request max-body place)
        decode (when (some #{content-type} accepted) (format/decoders content-type))]
    (if (or (nil? decode) (zero? (alength body)))
      (throw (not-decoded))
      (do (swap! place room/exchange! (+ (* (long cost-of-byte) (alength body)) (* (long cost-of-part) (scan/parts body))))
          (let [value (decoded decode body content-type)]
            (if (map? value) value (throw (not-decoded))))))))

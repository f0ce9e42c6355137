(ns front.body
  "Request bodies: read within a limit, decoded by their Content-Type."
  (:require [front.format :as format]
            [front.refusal :as refusal])
  (:import (java.io ByteArrayOutputStream InputStream)
           (org.eclipse.jetty.http HttpFields HttpHeader)
           (org.eclipse.jetty.server Request)))

(set! *warn-on-reflection* true)

(def ^:private discard-factor
  "How many times the limit is read and thrown away, so that a client that is still sending can see the 413."
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

(defn- declared-length ^long [^Request request]
  (.getLongField ^HttpFields (.getHeaders request) HttpHeader/CONTENT_LENGTH))

(defn- read-bytes ^bytes [^Request request ^long max-body]
  (with-open [in (Request/asInputStream request)]
    (let [out (ByteArrayOutputStream. (int (max 1024 (min (declared-length request) max-body))))
          buffer (byte-array 65536)]
      (loop [total 0]
        (let [n (.read in buffer)]
          (cond
            (neg? n) (.toByteArray out)
            (> (+ total n) max-body) (do (discard! in (* discard-factor max-body))
                                         (throw (too-large max-body)))
            :else (do (.write out buffer 0 n)
                      (recur (+ total n)))))))))

(defn- not-decoded []
  (refusal/coercion :body-params "map?" nil [{:path [], :in [], :via [], :pred "map?", :val nil}]))

(defn read-value
  "The body as a value. `accepted` are the media types this endpoint decodes.
  Throws 413 when it is too large, 400 when it is malformed, empty, or of another type."
  [^Request request accepted max-body]
  (let [content-type (format/media-type (.get ^HttpFields (.getHeaders request) HttpHeader/CONTENT_TYPE))
        body (read-bytes request max-body)
        decode (when (some #{content-type} accepted) (format/decoders content-type))]
    (cond
      (or (nil? decode) (zero? (alength body))) (throw (not-decoded))
      :else (let [value (try
                          (decode body)
                          (catch Exception _ (throw (refusal/malformed content-type)))
                          (catch StackOverflowError _ (throw (refusal/malformed content-type))))]
              (if (map? value) value (throw (not-decoded)))))))

(ns front.reply
  "Writes answers. The first 32 KB are held back, so that a failure while they are made is still a proper status;
  a failure after that cuts the connection, so that a cut-off answer never looks whole."
  (:require [front.failure :as failure]
            [front.format :as format]
            [front.rows])
  (:import (front.rows Rows)
           (java.io ByteArrayOutputStream Closeable OutputStream)
           (java.nio ByteBuffer)
           (java.nio.charset StandardCharsets)
           (java.time ZoneOffset)
           (java.time.format DateTimeFormatter)
           (java.util Date)
           (org.eclipse.jetty.http HttpHeader)
           (org.eclipse.jetty.io Content$Sink)
           (org.eclipse.jetty.server Response)
           (org.eclipse.jetty.util Callback)))

(set! *warn-on-reflection* true)

(def ^:private held-back (* 32 1024))

(def ^:private http-date (.withZone DateTimeFormatter/RFC_1123_DATE_TIME ZoneOffset/UTC))

(defn- set-head! [^Response response {:keys [status headers ^Date last-modified]} content-type]
  (.setStatus response (int status))
  (let [fields (.getHeaders response)]
    (when content-type
      (.put fields HttpHeader/CONTENT_TYPE ^String content-type))
    (when last-modified
      (.put fields HttpHeader/LAST_MODIFIED ^String (.format ^DateTimeFormatter http-date (.toInstant last-modified))))
    (doseq [[field value] headers]
      (.put fields ^String field ^String value))))

(defn- holding-back ^OutputStream [^Response response ^ByteArrayOutputStream held]
  (letfn [(pass-on []
            (when (>= (.size held) (long held-back))
              (Content$Sink/write response false (ByteBuffer/wrap (.toByteArray held)))
              (.reset held)))]
    (proxy [OutputStream] []
      (write
        ([b]
         (if (bytes? b)
           (.write held ^bytes b 0 (alength ^bytes b))
           (.write held (int b)))
         (pass-on))
        ([b offset length]
         (.write held ^bytes b (int offset) (int length))
         (pass-on)))
      (flush [])
      (close []))))

(defn- finish! [^Response response ^ByteArrayOutputStream held]
  (when-not (.isCommitted response)
    (.put (.getHeaders response) HttpHeader/CONTENT_LENGTH (long (.size held))))
  (Content$Sink/write response true (ByteBuffer/wrap (.toByteArray held))))

(defn- write-text! [response {:keys [^String body] :as answer}]
  (set-head! response answer "text/plain;charset=utf-8")
  (let [held (ByteArrayOutputStream.)]
    (.writeBytes held (.getBytes body StandardCharsets/UTF_8))
    (finish! response held)))

(defn- write-encoded! [response {:keys [body] :as answer} media-type]
  (let [held (ByteArrayOutputStream.)
        out (holding-back response held)
        {:keys [write write-list]} (format/encoders media-type)]
    (set-head! response answer (str media-type ";charset=utf-8"))
    (if (instance? Rows body)
      (with-open [^Closeable _ body]
        (write-list (:items body) out))
      (write body out))
    (finish! response held)))

(defn write!
  "Writes one answer, `{:status :body :headers :last-modified}`, and waits until it is out.
  The body is a value, rows, text, or nil for none. Throws what making it threw."
  [^Response response {:keys [body] :as answer} media-type]
  (cond
    (nil? body) (do (set-head! response answer nil)
                    (finish! response (ByteArrayOutputStream.)))
    (string? body) (write-text! response answer)
    :else (write-encoded! response answer media-type)))

(defn fail!
  "Answers with what this exception is on the wire, or cuts the connection when part of another answer is out already."
  [^Response response ^Callback callback media-type encode ^Throwable e]
  (let [cut-off? (.isCommitted response)]
    (failure/note! e cut-off?)
    (if cut-off?
      (.failed callback e)
      (try
        (.reset response)
        (write! response (update (failure/answer e) :body #(if (map? %) (encode %) %)) media-type)
        (.succeeded callback)
        (catch Throwable e2
          (.failed callback e2))))))

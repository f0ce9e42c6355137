(ns front.reply
  "Writes answers. The first 32 KB are held back, so that an early failure still gets its own status.
  A later failure follows in a trailer if the client accepts trailers. Otherwise it cuts the connection, so that
  a cut-off answer never looks complete."
  (:require [front.failure :as failure]
            [front.format :as format]
            [front.rows])
  (:import (front.rows Rows)
           (java.io ByteArrayOutputStream Closeable OutputStream)
           (java.nio ByteBuffer)
           (java.nio.charset StandardCharsets)
           (java.time ZoneOffset)
           (java.time.format DateTimeFormatter)
           (java.util Base64 Date)
           (java.util.function Supplier)
           (org.eclipse.jetty.http HttpFields HttpHeader)
           (org.eclipse.jetty.io Content$Sink)
           (org.eclipse.jetty.server Request Response)
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

(def ^:private refusal-field
  "The trailer of an answer that failed after its first bytes: the status, and the body in the answer's media type as base64."
  "Front-Refusal")
(def ^:private trailers-attribute "front.trailers")

(defn- accepts-trailers? [^Request request]
  (some-> (.get (.getHeaders request) HttpHeader/TE) (->> (re-find #"(?i)\btrailers\b"))))

(defn- offer-trailers!
  "Prepares the answer for a trailer. Possible only before its first byte."
  [^Response response]
  (let [request (.getRequest response)]
    (when (and (not (.isCommitted response)) (accepts-trailers? request))
      (let [trailers (promise)]
        (.setAttribute request trailers-attribute trailers)
        (.setTrailersSupplier response (reify Supplier (get [_] (deref trailers 0 nil))))))))

(defn- holding-back ^OutputStream [^Response response ^ByteArrayOutputStream held]
  (letfn [(pass-on []
            (when (>= (.size held) (long held-back))
              (offer-trailers! response)
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
  "Writes one answer, `{:status :body :headers :last-modified}`, and waits until it is written.
  The body is a value, rows, text, or nil for none. Passes on any exception from making it."
  [^Response response {:keys [body] :as answer} media-type]
  (cond
    (nil? body) (do (set-head! response answer nil)
                    (finish! response (ByteArrayOutputStream.)))
    (string? body) (write-text! response answer)
    :else (write-encoded! response answer media-type)))

(defn- encoded-failure [encode media-type e]
  (let [{:keys [status body]} (update (failure/answer e) :body #(if (map? %) (encode %) %))
        out (ByteArrayOutputStream.)]
    (if (string? body)
      (.writeBytes out (.getBytes ^String body StandardCharsets/UTF_8))
      ((:write (format/encoders media-type)) body out))
    (str status " " (.encodeToString (Base64/getEncoder) (.toByteArray out)))))

(defn- end-with-refusal!
  "Ends a partly written answer with a trailer that has the reason. False if its client accepts no trailers."
  [^Response response media-type encode e]
  (when-let [trailers (.getAttribute (.getRequest response) trailers-attribute)]
    ;; A query that ran out of time was interrupted, and an interrupted thread cannot write.
    (Thread/interrupted)
    (deliver trailers (doto (HttpFields/build) (.put ^String refusal-field ^String (encoded-failure encode media-type e))))
    (Content$Sink/write response true (ByteBuffer/allocate 0))
    true))

(defn fail!
  "Answers with this exception's status and error. If another answer is already partly written, a trailer has the error; without a trailer the
  connection is cut."
  [^Response response ^Callback callback media-type encode ^Throwable e]
  (let [cut-off? (.isCommitted response)]
    (failure/note! e cut-off?)
    (if cut-off?
      (if (try (end-with-refusal! response media-type encode e) (catch Throwable _ false))
        (.succeeded callback)
        (.failed callback e))
      (try
        (.reset response)
        (write! response (update (failure/answer e) :body #(if (map? %) (encode %) %)) media-type)
        (.succeeded callback)
        (catch Throwable e2
          (.failed callback e2))))))

(ns front.handler
  "Answers one request in this order: access, route, parameters, body, awaits, endpoint."
  (:require [clojure.string :as str]
            [front.activity :as activity]
            [front.allowance :as allowance]
            [front.arrival :as arrival]
            [front.awaiting :as awaiting]
            [front.body :as body]
            [front.format :as format]
            [front.lanes :as lanes]
            [front.params :as params]
            [front.refusal :as refusal]
            [front.reply :as reply]
            [front.routes :as routes]
            [front.rows :as rows]
            [front.slots :as slots])
  (:import (front.rows Rows)
           (org.eclipse.jetty.http HttpFields HttpHeader)
           (org.eclipse.jetty.server Request Response)
           (org.eclipse.jetty.util Callback)))

(set! *warn-on-reflection* true)

(defn- query-params [^Request request]
  (params/from-fields
   (try
     (Request/extractQueryParameters request)
     (catch Exception _
       (throw (refusal/refuse 400 {:error "Malformed query string."}))))))

(defn- header [^Request request field]
  (.get ^HttpFields (.getHeaders request) ^HttpHeader field))

(defn- media-type-for [request {:keys [always formats]}]
  (or always (format/negotiate (header request HttpHeader/ACCEPT) formats)))

(defn- as-json [{:keys [json json-item]} answer]
  (update answer :body (fn [v]
                         (cond
                           (instance? Rows v) (rows/mapped v json-item)
                           (string? v) v
                           :else (json v)))))

(defn- shaped [route media-type answer]
  (if (= "application/json" media-type) (as-json route answer) answer))

(defn- read-input [{:keys [read-only?] :as context} ^Request request {:keys [decodes writes?] :as route}]
  (when (and writes? read-only?)
    (throw (refusal/refuse 403 "forbidden: read-only HTTP node")))
  (let [given (params/coerce (query-params request) (:params route) (:required route))]
    (if-not decodes
      {:params given}
      (let [_ (activity/transfers! request true)
            body (body/read-value request decodes context)]
        (activity/transfers! request false)
        {:params given
         :body body
         :body-type (format/media-type (header request HttpHeader/CONTENT_TYPE))}))))

(defn- run-route [context request ^Response response ^Callback callback route]
  (let [media-type (media-type-for request route)
        finish (fn [answer]
                 (activity/transfers! request true)
                 (reply/write! response (shaped route media-type answer) media-type)
                 (.succeeded callback))
        fail (fn [e]
               (reply/fail! response callback media-type
                            #(:body (shaped route media-type {:body %})) e))]
    (try
      (let [input (assoc (read-input context request route) :media-type media-type)
            _ (awaiting/await-requested! context (:params input))
            {:keys [slot] :as answer} ((:run route) context input)]
        (if slot
          (slots/run! (:slots context) (:limit-ms slot) #(finish ((:work slot))) fail)
          (finish answer)))
      (catch Throwable e
        (fail e)))))

(defn- waits? [^Request request]
  (some-> (.getQuery (.getHttpURI request)) (->> (re-find #"(?i)await-?tx-?id"))))

(defn- lane-of
  "The lane of this request, or nil if it is answered on the thread that received it."
  [request {:keys [decodes lane]}]
  (cond
    (= :here lane) nil
    (or (= :await lane) (waits? request)) :await
    decodes :body
    :else :read))

(defn- check-started! [{:keys [starting]} {:keys [always?]}]
  (when-let [{:keys [indexed of]} (and (not always?) (starting))]
    (throw (refusal/refuse 503
                           {:error (str "starting, " indexed " of " of " transactions indexed; try again")}
                           {"Retry-After" "1"}))))

(defn- hand-over [context request response callback {:keys [decodes] :as route}]
  (check-started! context route)
  (let [lane (lane-of request route)
        work (fn [request] (allowance/within (fn [] (run-route context request response callback route))))
        run (fn [request] (if lane (lanes/run! (:lanes context) lane #(work request)) (work request)))]
    (if decodes
      (arrival/when-arrived! request run #(reply/fail! response callback format/default-format identity %))
      (run request))))

(def ^:private bare-answers
  {:unknown-path {:status 404}
   :wrong-method {:status 405}
   :front-page {:status 302, :headers {"Location" "/_xtdb/query"}}})

(defn- find-route [^Request request]
  (let [path (Request/getPathInContext request)
        method (keyword (str/lower-case (.getMethod request)))]
    (if (and (= "/" path) (= :get method))
      :front-page
      (routes/find-route path method))))

(defn handle
  "Answers one request, here or on a thread of its lane. It completes the callback in both cases."
  [{:keys [gate] :as context} request response ^Callback callback]
  (try
    (gate request)
    (let [route (find-route request)]
      (if-let [bare (bare-answers route)]
        (do (reply/write! response bare nil)
            (.succeeded callback))
        (hand-over context request response callback route)))
    (catch Throwable e
      (reply/fail! response callback format/default-format identity e))))

(ns front.endpoints.query
  "Endpoints for Datalog queries, and for the lists of active and recent queries."
  (:require [clojure.string :as str]
            [front.endpoints.basis :as basis]
            [front.endpoints.links :as links]
            [front.query-guard :as query-guard]
            [front.refusal :as refusal]
            [front.rewriting :as rewriting]
            [front.rows :as rows]
            [front.shape :as shape]
            [front.size :as size]
            [xtdb.api :as xt])
  (:import (java.time ZoneOffset)
           (java.time.format DateTimeFormatter)
           (java.util Date)))

(set! *warn-on-reflection* true)

(def params
  (merge basis/params
         {:query-edn :edn
          :in-args-edn :arguments-edn
          :in-args-json :arguments-json
          :link-entities? :truth}))

(defn- check-body! [body]
  (when body
    (doseq [[part ok?] {:query (contains? body :query)
                        :in-args (or (nil? (:in-args body)) (vector? (:in-args body)))}
            :when (not ok?)]
      (throw (refusal/coercion :body-params "query" (shape/short-text body)
                               [{:path [part], :in [part], :via [], :pred "query", :val (shape/short-text (get body part))}])))))

(def ^:private ^DateTimeFormatter file-time
  (.withZone (DateTimeFormatter/ofPattern "yyyyMMdd'T'HHmmssXXX") ZoneOffset/UTC))

(defn- download-headers [media-type db]
  (let [extension (subs media-type (count "text/"))
        ^Date tx-time (get-in (xt/db-basis db) [::xt/tx ::xt/tx-time])]
    {"Content-Disposition" (str "attachment; filename=query"
                                (when tx-time (str "-" (.format file-time (.toInstant tx-time))))
                                "." extension)}))

(defn- answer [{:keys [max-rows] :as context} params query in-args media-type]
  (let [db (basis/db context params)
        found (rows/from-cursor (apply xt/open-q db (rewriting/counted query query-guard/as-map) in-args)
                                (if (:link-entities? params) #(links/link-row db %) identity)
                                max-rows)]
    (if (str/starts-with? media-type "text/")
      {:status 200, :headers (download-headers media-type db), :body (rows/with-first found (:find query))}
      {:status 200, :body found})))

(defn- check-size! [arg]
  (when (> (size/measure arg size/largest-value) size/largest-value)
    (throw (refusal/illegal-argument :value-too-large (str "An argument of more than " size/largest-value " characters")))))

(defn query
  "GET and POST /query: checks the query, then runs it in a slot."
  [context {:keys [params body media-type]}]
  (check-body! body)
  (let [given (or (:query-edn params) (:query body))
        in-args (or (:in-args-edn params) (:in-args-json params) (:in-args body))]
    (when (nil? given)
      (throw (refusal/illegal-argument :no-query "No query provided")))
    (let [checked (query-guard/checked given)]
      (shape/check! in-args :args-spec-failed)
      (doseq [arg (concat in-args (:args checked))] (check-size! arg))
      {:slot {:limit-ms (when (nat-int? (:timeout checked)) (:timeout checked))
              :work #(answer context params checked in-args media-type)}})))

(defn- listing [queries]
  {:status 200, :body (apply list (map #(update % :query rewriting/as-written) queries))})

(defn active [{:keys [node]} _] (listing (xt/active-queries node)))
(defn recent [{:keys [node]} _] (listing (xt/recent-queries node)))
(defn slowest [{:keys [node]} _] (listing (xt/slowest-queries node)))

(ns juxt.clojars-mirrors.clj-http.v3v12v2.clj-http.client
  "The part of clj-http that XTDB's remote client and its tests use, written on the JDK's HTTP client: Maven Central does not have XTDB's mirror of clj-http."
  (:refer-clojure :exclude [get])
  (:require [clojure.string :as string])
  (:import (java.net URI URLEncoder)
           (java.net.http HttpClient HttpRequest HttpRequest$BodyPublishers HttpResponse HttpResponse$BodyHandlers)))

(def ^:private client (delay (HttpClient/newHttpClient)))

(def ^:private media-types {:edn "application/edn" :json "application/json"})

(defn- media-type [value] (clojure.core/get media-types value value))

(defn- with-params [url params]
  (let [encode #(URLEncoder/encode (str %) "UTF-8")
        shown #(if (keyword? %) (name %) %)]
    (if (empty? params)
      url
      (str url (cond (string/ends-with? url "?") "" (string/includes? url "?") "&" :else "?") (string/join "&" (for [[k v] params] (str (encode (shown k)) "=" (encode (shown v)))))))))

(defn request [{:keys [url method headers body accept content-type query-params as throw-exceptions]}]
  (let [publisher (if body (HttpRequest$BodyPublishers/ofString body) (HttpRequest$BodyPublishers/noBody))
        builder (.method (HttpRequest/newBuilder (URI/create (with-params url query-params))) (string/upper-case (name method)) publisher)]
    (doseq [[k v] (cond-> headers
                    accept (assoc "Accept" (media-type accept))
                    content-type (assoc "Content-Type" (media-type content-type)))]
      (.header builder k v))
    (let [handler (if (= :stream as) (HttpResponse$BodyHandlers/ofInputStream) (HttpResponse$BodyHandlers/ofString))
          ^HttpResponse response (.send ^HttpClient @client (.build builder) handler)
          answer {:status (.statusCode response)
                  :headers (into {} (map (fn [[k v]] [k (first v)])) (.map (.headers response)))
                  :body (.body response)}]
      (when (and throw-exceptions (<= 400 (:status answer)))
        (throw (ex-info (str "HTTP status " (:status answer)) (update answer :body #(if (string? %) % (slurp %))))))
      answer)))

(defn get [url options] (request (assoc options :url url :method :get)))

(defn post [url options] (request (assoc options :url url :method :post)))

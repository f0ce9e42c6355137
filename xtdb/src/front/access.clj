(ns front.access
  "Decides who may send requests, by the headers alone, before the front reads a body or awaits anything."
  (:require [clojure.string :as str]
            [front.refusal :as refusal])
  (:import (java.nio.charset StandardCharsets)
           (java.security MessageDigest)
           (org.eclipse.jetty.http HttpFields HttpHeader)
           (org.eclipse.jetty.server Request)))

(set! *warn-on-reflection* true)

(def ^:private own-hosts #{"127.0.0.1" "localhost" "[::1]"})

(defn- host-name [host]
  (some-> host str/lower-case (str/replace #":[0-9]+$" "")))

(defn- digest ^bytes [^String text]
  (.digest (MessageDigest/getInstance "SHA-256") (.getBytes text StandardCharsets/UTF_8)))

(defn- presented-token [^HttpFields headers]
  (second (re-matches #"(?i)Bearer +(\S+)" (or (.get headers HttpHeader/AUTHORIZATION) ""))))

(defn- check-host! [^HttpFields headers]
  (when-not (contains? own-hosts (host-name (.get headers HttpHeader/HOST)))
    (throw (refusal/refuse 403 "forbidden: this Host is not served here" {"Connection" "close"}))))

(defn- check-token! [^HttpFields headers ^bytes expected]
  (when-not (MessageDigest/isEqual expected (digest (or (presented-token headers) "")))
    (throw (refusal/refuse 401 "unauthorized: bearer token missing or wrong" {"Connection" "close", "WWW-Authenticate" "Bearer"}))))

(defn- check-same-site! [^HttpFields headers]
  ;; Without a token, only web pages in a browser on this machine have to be refused.
  (when (or (.get headers "Origin")
            (not (contains? #{nil "none" "same-origin"} (.get headers "Sec-Fetch-Site"))))
    (throw (refusal/refuse 403 "forbidden: requests from web pages are not served here" {"Connection" "close"}))))

(defn gate
  "A function of the request that throws 401 or 403 unless the request is allowed.
  `:tcp?` asks for a Host of this machine, and for the bearer token or, where there is none, for a caller that is no web page.
  On a unix socket the folder's permissions have decided already."
  [{:keys [tcp? token]}]
  (if-not tcp?
    (constantly nil)
    (let [expected (some-> token digest)]
      (fn [^Request request]
        (let [headers (.getHeaders request)]
          (check-host! headers)
          (if expected
            (check-token! headers expected)
            (check-same-site! headers)))))))

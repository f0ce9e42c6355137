(ns front.flags
  "The command line as one checked map."
  (:require [clojure.string :as str])
  (:import (java.nio.file Path)))

(set! *warn-on-reflection* true)

(def usage
  (str "usage: front.main --config FILE.edn [--settings FILE.json] [--data DIR] [--lock FILE]\n"
       "                  (--socket PATH | --port N [--host ADDRESS] [--token-file FILE [--make-token]])\n"
       "                  [--idle-exit SECONDS] [--sweep FILE]\n"
       "                  [--query-timeout MS] [--max-rows N] [--max-body BYTES] [--max-queries N]\n"
       "                  [--await-timeout MS] [--read-only] [--exit-when-failed] [--warm]\n"
       "                  [--start-on-input] [--stop-on-request]\n"
       "       front.main --version"))

(defn- path [text] (Path/of text (make-array String 0)))

(defn- text [text] (when-not (str/blank? text) text))

(defn- whole-number [least most]
  (fn [text]
    (let [n (parse-long text)]
      (when (and n (<= least n most)) n))))

(def ^:private with-value
  "By flag: its key, and a function from its text to a value (nil if the text is invalid)."
  {"--config" [:config path]
   "--settings" [:settings path]
   "--data" [:data path]
   "--lock" [:lock path]
   "--sweep" [:sweep path]
   "--socket" [:socket path]
   "--token-file" [:token-file path]
   "--host" [:host text]
   "--port" [:port (whole-number 0 65535)]
   "--idle-exit" [:idle-exit (whole-number 0 Integer/MAX_VALUE)]
   "--query-timeout" [:query-timeout (whole-number 1 86400000)]
   "--max-rows" [:max-rows (whole-number 1 Long/MAX_VALUE)]
   "--max-body" [:max-body (whole-number 1 1073741824)]
   "--max-queries" [:max-queries (whole-number 1 1024)]
   "--await-timeout" [:await-timeout (whole-number 1 3600000)]})

(def ^:private switches
  {"--make-token" :make-token, "--read-only" :read-only, "--exit-when-failed" :exit-when-failed, "--warm" :warm, "--start-on-input" :start-on-input,
   "--stop-on-request" :stop-on-request, "--version" :version})

(def ^:private defaults
  {:idle-exit 0
   :query-timeout 30000
   :max-rows 1000000
   :max-body 67108864
   :max-queries 8
   :await-timeout 10000})

(defn- wrong [& reason]
  (throw (ex-info (str/join reason) {::usage true})))

(defn usage-error?
  "Whether this exception says that the command line is wrong."
  [e]
  (true? (::usage (ex-data e))))

(defn- collect [given [flag value & more :as all]]
  (cond
    (empty? all) given
    (switches flag) (recur (assoc given (switches flag) true) (rest all))
    (nil? (with-value flag)) (wrong "unknown flag " flag)
    (nil? value) (wrong flag " needs a value")
    :else (let [[k convert] (with-value flag)
                converted (convert value)]
            (when (nil? converted) (wrong flag " cannot be " value))
            (recur (assoc given k converted) more))))

(def ^:private loopback #{"127.0.0.1" "::1" "localhost"})

(defn- check [{:keys [config socket host port token-file make-token sweep warm version] :as given}]
  (cond
    version given
    (nil? config) (wrong "--config is missing")
    (and socket port) (wrong "--socket and --port exclude each other")
    (and token-file (not port)) (wrong "--token-file goes with --port")
    (and sweep (not (:data given))) (wrong "--sweep goes with --data")
    (and host (not port)) (wrong "--host goes with --port")
    (and host (not (loopback host)) (not token-file)) (wrong "--host " host " needs --token-file")
    (and make-token (not token-file)) (wrong "--make-token goes with --token-file")
    (not (or socket port warm)) (wrong "--socket or --port is missing")
    :else given))

(defn parse
  "The flags with defaults. Throws an exception of `usage-error?` whose message has the reason."
  [args]
  (merge defaults (check (collect {} args))))

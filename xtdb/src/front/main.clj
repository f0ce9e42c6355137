(ns front.main
  "Starts an XTDB node and its HTTP front, reports when they are ready (the index contains the log as of the start), and ends both cleanly."
  (:gen-class)
  (:require [clojure.tools.logging :as log]
            [front.access :as access]
            [front.activity :as activity]
            [front.config :as config]
            [front.flags :as flags]
            [front.lanes :as lanes]
            [front.lock :as lock]
            [front.modules]
            [front.ready :as ready]
            [front.room :as room]
            [front.server :as server]
            [front.slots :as slots]
            [front.start-failure :as start-failure]
            [front.starting :as starting]
            [front.sweeping :as sweeping]
            [front.token :as token]
            [front.transit :as transit]
            [front.warm :as warm]
            [xtdb.api :as xt])
  (:import (java.io Closeable)))

(set! *warn-on-reflection* true)

(def ^:private usage-code 64)
(def ^:private failed-code
  "The exit code of a node that accepts no more writes (`--exit-when-failed`)."
  4)
(def ^:private progress-ms 200)
;; The interval of the checks for an idle node and a failed indexer. A status takes a millisecond, and an idle node should use almost no time.
(def ^:private watch-ms 1000)

(defn- exit! [code]
  (flush)
  (System/exit code))

(defn- fail! [{:keys [code message exit]}]
  (binding [*out* *err*]
    (println (str "front: " code ": " message)))
  (exit! exit))

(defn- context [node {:keys [port token-file make-token] :as flags}]
  (when make-token
    (token/make! token-file))
  {:node node
   :data (:data flags)
   :gate (access/gate {:tcp? (some? port), :token (some-> token-file token/read!)})
   :activity (activity/start)
   :slots (slots/open (:max-queries flags) (:query-timeout flags))
   :await-ms (:await-timeout flags)
   :max-rows (:max-rows flags)
   :max-body (:max-body flags)
   :room (room/open)
   :lanes (lanes/open)
   :starting (starting/since node)
   :store-failed (promise)
   :stop (when (:stop-on-request flags) (:stop flags))
   :read-only? (:read-only flags)})

(defn- listen! [context flags]
  (try
    (server/start! context flags)
    (catch Exception e
      (throw (ex-info (str "Cannot listen on " (or (:socket flags) (str "port " (:port flags)))) {:front/bind true} e)))))

(defn- check-log!
  "An index ahead of the log means that a part of the log is lost. The node would skip new transactions that get the lost ones' ids."
  [node]
  (let [indexed (::xt/tx-id (xt/latest-completed-tx node) -1)
        logged (::xt/tx-id (xt/latest-submitted-tx node) -1)]
    (when (> indexed logged)
      (throw (ex-info (str "The transaction log ends at " logged " but the index has seen " indexed
                           ": a part of the log is lost. Restore it from a backup, or remove the index to go on without that part")
                      {:front/ahead true})))))

(defn- open-front
  "The node and its listening front. If a step fails, everything that was opened before it is closed."
  [flags]
  (let [^Closeable node (xt/start-node (config/load-config flags))]
    (try
      (check-log! node)
      (let [context (context node flags)]
        (assoc context :listening (listen! context flags)))
      (catch Throwable e
        (.close node)
        (throw e)))))

(defn- wait-until-ready!
  "Reports the index's progress until it reaches the log's end, or until the process should stop. True if the index is ready."
  [{:keys [starting]} stop]
  (loop [said nil]
    (let [behind (starting)]
      (cond
        (realized? stop) false
        (nil? behind) true
        :else (do
                (when (not= behind said) (ready/say-starting! behind))
                (deref stop progress-ms nil)
                (recur behind))))))

(defn- indexed-to-the-end?
  "Brings the index to the log's end, unless the process should stop earlier. A sweep would miss the evictions that are not indexed."
  [flags stop]
  (with-open [^Closeable node (xt/start-node (config/load-config flags))]
    (check-log! node)
    (when (wait-until-ready! {:starting (starting/since node)} stop)
      (when-let [reason (starting/ingester-error node (xt/status node))]
        (throw (ex-info (str "The stores cannot be swept, because the index does not come to the log's end: " reason) {})))
      true)))

(defn- close-front! [{:keys [listening slots lanes node]}]
  (server/stop! listening)
  (.close ^Closeable slots)
  (.close ^Closeable lanes)
  (.close ^Closeable node))

(defn- watch! [thread-name done?]
  (doto (Thread. (fn []
                   (loop []
                     (Thread/sleep (long watch-ms))
                     (when-not (done?) (recur))))
                 ^String thread-name)
    (.setDaemon true)
    (.start)))

(defn- watch-idle! [{:keys [activity]} seconds stop]
  (when (pos? seconds)
    (watch! "front-idle" #(when (activity/idle-for? activity seconds) (deliver stop :idle)))))

(defn- watch-writes!
  "Reports once that the indexer or the store accepts no more writes. The supervisor restarts this process when the disk has room. With `end?` the process
  ends."
  [{:keys [node store-failed]} end? stop]
  (watch! "front-writes" #(when-let [reason (or (starting/ingester-error node (xt/status node))
                                                (when (realized? store-failed) "store: a write was refused"))]
                            (ready/say-failed! reason)
                            (when end? (deliver stop :failed))
                            true)))

(defn- on-signal!
  "SIGTERM and SIGINT end in a clean close and exit code 0."
  [stop closed]
  (.addShutdownHook (Runtime/getRuntime)
                    (Thread. (fn []
                               (when (deliver stop :signal)
                                 (deref closed 15000 nil)
                                 (.halt (Runtime/getRuntime) 0)))
                             "front-shutdown")))

(defn- serve [flags]
  (let [stop (promise)
        closed (promise)
        _ (when (and (sweeping/ordered? flags) (indexed-to-the-end? flags stop))
            (sweeping/sweep! flags))
        front (open-front (assoc flags :stop stop))]
    (on-signal! stop closed)
    (when (wait-until-ready! front stop)
      (ready/say! (:listening front))
      (watch-idle! front (:idle-exit flags) stop)
      (watch-writes! front (:exit-when-failed flags) stop))
    (log/info "Stopping:" (name @stop))
    (try
      (close-front! front)
      (finally
        (deliver closed true)))
    (if (= :failed @stop) failed-code 0)))

(defn- abandoned?
  "Waits for the supervisor's line. If the supervisor dies before it has recorded this process, the input is closed instead."
  [flags]
  (and (:start-on-input flags) (neg? (.read System/in))))

(defn- start [flags]
  (transit/limit-parser! (:max-body flags))
  (cond
    (abandoned? flags) (do (log/info "The supervisor ended before the start") 0)
    (or (nil? (:lock flags)) (lock/take! (:lock flags)))
    (if (:warm flags)
      (do (warm/run (assoc flags :open open-front, :close close-front!)) 0)
      (serve flags))
    :else
    (fail! {:code "locked", :message (str "Another process holds " (:lock flags)), :exit start-failure/lock-held-code})))

(defn -main
  "See README.md for the flags and exit codes."
  [& args]
  (let [flags (try
                (flags/parse args)
                (catch clojure.lang.ExceptionInfo e
                  (binding [*out* *err*]
                    (println (str "front: usage: " (ex-message e)))
                    (println flags/usage))
                  (exit! usage-code)))]
    (if (:version flags)
      (println (ready/version))
      (try
        (exit! (start flags))
        (catch Throwable e
          (log/debug e "Did not start")
          (fail! (start-failure/reason e)))))
    ;; XTDB's own threads would keep the process alive.
    (exit! 0)))

(ns front.awaiting
  "Waiting for the indexer, never without a limit."
  (:require [xtdb.api :as xt])
  (:import (java.time Duration)))

(def ^:private longest-factor
  "How many times the usual limit a client may ask for."
  6)

(defn limit
  "The limit for one wait: the usual one, or what the client asks for, within reason."
  ^Duration [{:keys [await-ms]} asked-ms]
  (Duration/ofMillis (if asked-ms
                       (-> asked-ms (max 0) (min (* longest-factor await-ms)))
                       await-ms)))

(defn await-requested!
  "Waits for the transaction that `await-tx-id` names, if any. `await-tx-time` alone waits for nothing, as XTDB's wire has it.
  Throws TimeoutException."
  [{:keys [node] :as context} {:keys [await-tx-id await-tx-time await-tx-timeout]}]
  (when await-tx-id
    (xt/await-tx node
                 {::xt/tx-id await-tx-id, ::xt/tx-time await-tx-time}
                 (limit context await-tx-timeout))))

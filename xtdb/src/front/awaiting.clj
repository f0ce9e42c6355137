(ns front.awaiting
  "Waits for the indexer, always with a time limit."
  (:require [xtdb.api :as xt])
  (:import (java.time Duration)))

(def ^:private longest-factor
  "A client may ask for at most this multiple of the usual limit."
  6)

(defn limit
  "The limit for one wait: the usual one, or the client's, up to the maximum."
  ^Duration [{:keys [await-ms]} asked-ms]
  (Duration/ofMillis (if asked-ms
                       (-> asked-ms (max 0) (min (* longest-factor await-ms)))
                       await-ms)))

(defn await-requested!
  "Waits for the transaction that `await-tx-id` names, if any. `await-tx-time` alone does not wait, as in XTDB's HTTP API.
  Throws TimeoutException."
  [{:keys [node] :as context} {:keys [await-tx-id await-tx-time await-tx-timeout]}]
  (when await-tx-id
    (xt/await-tx node
                 {::xt/tx-id await-tx-id, ::xt/tx-time await-tx-time}
                 (limit context await-tx-timeout))))

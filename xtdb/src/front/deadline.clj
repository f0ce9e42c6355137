(ns front.deadline
  "A time limit for work on one thread: interrupts the thread repeatedly until it stops."
  (:require [clojure.tools.logging :as log]
            [front.memory :as memory]
            [front.refusal :as refusal])
  (:import (java.util Set)
           (java.util.concurrent ScheduledExecutorService TimeUnit TimeoutException)))

(set! *warn-on-reflection* true)

(def ^:private repeat-ms 100)

(defn- runaway-ms
  "If a thread still runs this long after its limit, the process exits: the same time again, at least five seconds."
  ^long [^long limit-ms]
  (max 5000 limit-ms))

(def ^:private runaway-exit-code 3)

(defn- give-up! [limit-ms]
  (log/error "A query did not stop" (runaway-ms limit-ms) "ms after its limit of" limit-ms "ms; ending the process")
  (.halt (Runtime/getRuntime) runaway-exit-code))

(defn- interrupt! [{:keys [^Thread thread state]} reason]
  (locking state
    (when-not (= :done @state)
      (swap! state #(if (= :running %) reason %))
      (.interrupt thread)
      true)))

(defn- tick [{:keys [^long expires-at limit-ms] :as watch}]
  (when (and (interrupt! watch :expired)
             (> (- (System/nanoTime) expires-at) (* (runaway-ms limit-ms) 1000000)))
    (give-up! limit-ms)))

(defn check!
  "Ends interrupted work, in loops where nothing else would."
  []
  (when (Thread/interrupted) (throw (InterruptedException.))))

(defn stop!
  "Interrupts the running work because memory is short. False once the work has ended."
  [watch]
  (boolean (interrupt! watch :too-large)))

(defn- ended-by [reason limit-ms ^Throwable e]
  (case reason
    :expired (doto (TimeoutException. (str "Stopped after " limit-ms " ms")) (.initCause e))
    :too-large (refusal/illegal-argument :too-much-memory "Stopped: it held more than the node can spare")
    e))

(defn run
  "Calls `f` on this thread for at most `limit-ms`; while it runs, `running` (a set) has the entry that `stop!` takes.
  Throws TimeoutException if the limit ended `f`, and a refusal if `stop!` did, whatever `f` threw in these cases.
  The interrupt never outlives the call."
  [^ScheduledExecutorService clock ^Set running limit-ms f]
  (let [state (atom :running)
        watch {:thread (Thread/currentThread)
               :allocated (memory/allocated (Thread/currentThread))
               :state state
               :expires-at (+ (System/nanoTime) (* (long limit-ms) 1000000))
               :limit-ms limit-ms}
        ticks (.scheduleWithFixedDelay clock ^Runnable (fn [] (tick watch)) (long limit-ms) (long repeat-ms) TimeUnit/MILLISECONDS)
        finish! (fn []
                  (.cancel ticks false)
                  (.remove running watch)
                  (locking state
                    (let [ended @state]
                      (reset! state :done)
                      (Thread/interrupted)
                      ended)))]
    (.add running watch)
    (try
      (let [result (f)]
        (finish!)
        result)
      (catch Throwable e
        (throw (ended-by (finish!) limit-ms e))))))

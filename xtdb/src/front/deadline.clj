(ns front.deadline
  "A time limit on what one thread does: interrupts it again and again until it stops."
  (:require [clojure.tools.logging :as log])
  (:import (java.util.concurrent ScheduledExecutorService TimeUnit TimeoutException)))

(set! *warn-on-reflection* true)

(def ^:private repeat-ms 100)

(defn- runaway-ms
  "How long a thread may go on after its limit before the whole process is given up: as long again, at least five seconds."
  ^long [^long limit-ms]
  (max 5000 limit-ms))

(def ^:private runaway-exit-code 3)

(defn- give-up! [limit-ms]
  (log/error "A query did not stop" (runaway-ms limit-ms) "ms after its limit of" limit-ms "ms; ending the process")
  (.halt (Runtime/getRuntime) runaway-exit-code))

(defn- tick [{:keys [^Thread thread state ^long expires-at limit-ms]}]
  (locking state
    (when-not (= :done @state)
      (reset! state :expired)
      (.interrupt thread)
      (when (> (- (System/nanoTime) expires-at) (* (runaway-ms limit-ms) 1000000))
        (give-up! limit-ms)))))

(defn run
  "Calls `f` on this thread for at most `limit-ms`. Throws TimeoutException when the limit ended it, whatever `f` threw then.
  An interrupt of ours never outlives the call."
  [^ScheduledExecutorService clock limit-ms f]
  (let [state (atom :running)
        watch {:thread (Thread/currentThread)
               :state state
               :expires-at (+ (System/nanoTime) (* (long limit-ms) 1000000))
               :limit-ms limit-ms}
        ticks (.scheduleWithFixedDelay clock ^Runnable (fn [] (tick watch)) (long limit-ms) (long repeat-ms) TimeUnit/MILLISECONDS)
        finish! (fn []
                  (.cancel ticks false)
                  (locking state
                    (let [ended @state]
                      (reset! state :done)
                      (Thread/interrupted)
                      ended)))]
    (try
      (let [result (f)]
        (finish!)
        result)
      (catch Throwable e
        (if (= :expired (finish!))
          (throw (doto (TimeoutException. (str "Stopped after " limit-ms " ms")) (.initCause e)))
          (throw e))))))

(ns report
  "Runs a namespace's tests and prints one line of JSON: the number of passed assertions, and each other assertion with its test."
  (:require [clojure.data.json :as json]
            [clojure.test :as t]))

(defn -main [namespace]
  (let [passed (atom 0)
        other (atom [])
        shown #(subs % 0 (min 600 (count %)))
        note (fn [{:keys [type expected actual]}]
               (swap! other conj {:test (str (:name (meta (first t/*testing-vars*)))) :type (name type)
                                  :expected (shown (pr-str expected))
                                  :actual (shown (if (instance? Throwable actual) (str actual) (pr-str actual)))}))]
    (require (symbol namespace))
    (binding [t/report (fn [event]
                         (case (:type event)
                           :pass (swap! passed inc)
                           (:fail :error) (note event)
                           nil))]
      (t/run-tests (symbol namespace)))
    (println (json/write-str {:passed @passed :other @other}))
    (shutdown-agents)
    (System/exit 0)))

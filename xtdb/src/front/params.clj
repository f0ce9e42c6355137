(ns front.params
  "Query parameters: kebab-case or camelCase names, typed values, unknown ones dropped."
  (:require [clojure.instant :as instant]
            [clojure.string :as str]
            [front.edn :as edn]
            [front.json :as json]
            [front.refusal :as refusal]
            [xtdb.codec :as c])
  (:import (org.eclipse.jetty.util Fields Fields$Field)))

(set! *warn-on-reflection* true)

(defn kebab-case
  "The name as XTDB's documentation of the HTTP API writes it."
  [^String parameter]
  (str/lower-case (str/replace parameter #"(?<=[a-z0-9])([A-Z])" "-$1")))

(defn from-fields
  "A map from each name to the list of its values."
  [^Fields fields]
  (reduce (fn [m ^Fields$Field field]
            (update m (kebab-case (.getName field)) (fnil into []) (.getValues field)))
          {} fields))

(def ^:private truth {"true" true, "false" false})

(defn- valid-id [id]
  (when (c/valid-id? id) id))

(defn- argument-list [v]
  (when (vector? v) v))

(def ^:private kinds
  "By kind: its name in errors, and a function from its text to a value (nil or an exception if the text is invalid)."
  {:text ["string?" identity]
   :id ["valid-id?" valid-id]
   :id-edn ["valid-id?" #(valid-id (edn/read-one % nil))]
   :id-json ["valid-id?" #(valid-id (json/read-text %))]
   :edn ["edn?" #(edn/read-one % nil)]
   :arguments-edn ["vector?" #(argument-list (edn/read-one % nil))]
   :arguments-json ["vector?" #(argument-list (json/read-text %))]
   :integer ["int?" #(Long/parseLong %)]
   :truth ["boolean?" truth]
   :time ["inst?" instant/read-instant-date]
   :sort-order ["sort-order?" #(get {"asc" :asc, "desc" :desc} (str/replace % #"^:" ""))]})

(defn- problem [parameter pred value]
  {:path [parameter], :in [parameter], :via [], :pred pred, :val value})

(defn- coerce-one [parameter kind values]
  (let [[pred coerce] (kinds kind)
        value (first values)
        coerced (when (= 1 (count values))
                  (try
                    (coerce value)
                    (catch StackOverflowError _ nil)
                    (catch Exception e (when-let [refused (refusal/within e)] (throw refused)))))]
    (if (some? coerced)
      coerced
      (throw (refusal/coercion :query-params pred {parameter value} [(problem parameter pred value)])))))

(defn coerce
  "The known parameters with typed values. `known` maps names to kinds; `required` names must be present.
  Throws a 400 refusal that names the parameter."
  [given known required]
  (let [coerced (into {}
                      (for [[parameter kind] known
                            :let [values (get given (name parameter))]
                            :when values]
                        [parameter (coerce-one parameter kind values)]))]
    (doseq [parameter required
            :when (not (contains? coerced parameter))]
      (throw (refusal/coercion :query-params "required" {} [(problem parameter "required" nil)])))
    coerced))

(ns front.refusal
  "Requests turned down by the front, as exceptions that carry their answer.")

(defn refuse
  "An exception that is answered with this status and body (a map, or plain text)."
  ([status body] (refuse status body {}))
  ([status body headers]
   (ex-info (str "Refused with status " status) {::status status, ::body body, ::headers headers})))

(defn illegal-argument
  "An exception that is answered with 400 and an error map of XTDB's shape."
  ([error-key message] (illegal-argument error-key message {}))
  ([error-key message more]
   (refuse 400 (merge {:xtdb.error/error-type :illegal-argument
                       :xtdb.error/error-key error-key
                       :xtdb.error/message message}
                      more))))

(defn malformed
  "A body that cannot be read as what it says it is."
  [content-type]
  (refuse 400 {:error (str "Malformed \"" content-type "\" request.")}))

(defn coercion
  "A parameter or body of the wrong shape. `where` is :query-params or :body-params."
  [where spec value problems]
  (refuse 400 {:type :reitit.coercion/request-coercion
               :coercion :spec
               :spec spec
               :problems problems
               :value value
               :in [:request where]}))

(defn answer
  "The status, body and headers that this exception carries, or nil."
  [e]
  (let [{::keys [status body headers]} (ex-data e)]
    (when status {:status status, :body body, :headers headers})))

(defn within
  "The refusal among this exception's causes, or nil: readers wrap what their handlers throw."
  [^Throwable e]
  (first (filter answer (take 20 (take-while some? (iterate #(.getCause ^Throwable %) e))))))

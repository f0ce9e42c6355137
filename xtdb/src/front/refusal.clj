(ns front.refusal
  "Refusals of requests by the front: exceptions that carry the answer.")

(defn refuse
  "An exception whose answer has this status and body (a map, or plain text)."
  ([status body] (refuse status body {}))
  ([status body headers]
   (ex-info (str "Refused with status " status) {::status status, ::body body, ::headers headers})))

(defn illegal-argument
  "An exception whose answer is a 400 with an error map in XTDB's form."
  ([error-key message] (illegal-argument error-key message {}))
  ([error-key message more]
   (refuse 400 (merge {:xtdb.error/error-type :illegal-argument
                       :xtdb.error/error-key error-key
                       :xtdb.error/message message}
                      more))))

(defn malformed
  "The refusal of a body that does not match its media type."
  [content-type]
  (refuse 400 {:error (str "Malformed \"" content-type "\" request.")}))

(defn coercion
  "The refusal of a parameter or body with the wrong structure. `where` is :query-params or :body-params."
  [where spec value problems]
  (refuse 400 {:type :reitit.coercion/request-coercion
               :coercion :spec
               :spec spec
               :problems problems
               :value value
               :in [:request where]}))

(defn answer
  "This exception's status, body and headers, or nil."
  [e]
  (let [{::keys [status body headers]} (ex-data e)]
    (when status {:status status, :body body, :headers headers})))

(defn within
  "The refusal among this exception's causes, or nil. The causes matter because readers wrap their handlers' exceptions."
  [^Throwable e]
  (first (filter answer (take 20 (take-while some? (iterate #(.getCause ^Throwable %) e))))))

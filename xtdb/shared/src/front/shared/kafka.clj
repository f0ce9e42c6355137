(ns front.shared.kafka
  "A log in Kafka. Its broker and topic are checked before use."
  (:require [clojure.java.io :as io]
            [clojure.string :as str]
            [front.refusal :as refusal]
            [front.shared.trouble :as trouble]
            [xtdb.api :as xt]
            [xtdb.db :as db]
            [xtdb.io :as xio]
            [xtdb.kafka :as kafka]
            [xtdb.system :as sys])
  (:import (java.io Closeable IOException)
           (java.time Duration)
           (java.util Collection Map)
           (java.util.concurrent ExecutionException)
           (org.apache.kafka.clients.admin AdminClient Config ListOffsetsResult$ListOffsetsResultInfo NewTopic OffsetSpec TopicDescription)
           (org.apache.kafka.common KafkaException TopicPartition TopicPartitionInfo)
           (org.apache.kafka.common.config ConfigException ConfigResource ConfigResource$Type)
           (org.apache.kafka.common.errors AuthenticationException AuthorizationException InvalidReplicationFactorException RecordTooLargeException
                                           RetriableException SslAuthenticationException TimeoutException TopicExistsException
                                           UnknownTopicOrPartitionException UnsupportedVersionException)))

(set! *warn-on-reflection* true)

(def ^:private ours
  "Settings that override any properties file. Every in-sync replica acknowledges a transaction. If the log no longer has the index's position,
  that is an error; the client never restarts from the log's beginning or end."
  {"acks" "all"
   "enable.idempotence" "true"
   "auto.offset.reset" "none"
   "enable.auto.commit" "false"
   "request.timeout.ms" "10000"
   "default.api.timeout.ms" "15000"
   "max.block.ms" "15000"
   "delivery.timeout.ms" "30000"})

(defn- of-file [path]
  (try
    (with-open [in (io/reader (io/file path))]
      (into {} (xio/load-properties in)))
    (catch IOException e
      (throw (trouble/trouble :log-denied (str "The Kafka properties " path " cannot be read (" (.getSimpleName (class e)) ")") e)))))

(defn- config [{:strs [brokers propertiesFile]}]
  (merge (when propertiesFile (of-file propertiesFile))
         {"bootstrap.servers" (str/join "," brokers)}
         ours))

(defn- unusable
  "The exception's own message may quote a secret."
  [{:strs [propertiesFile]} e]
  (let [[_ setting] (re-find #"for configuration ([\w.]+)" (or (ex-message e) ""))]
    (trouble/trouble :log-unfit (str "The settings of the Kafka client cannot be used"
                                     (when propertiesFile (str " (" propertiesFile ")"))
                                     (when setting (str ": " setting))))))

(defn- failure [{:strs [brokers topic replication]} e]
  (let [at (str/join "," brokers)
        cause (first (filter #(instance? KafkaException %) (trouble/causes e)))
        is? (fn [& classes] (some #(instance? % cause) classes))
        trouble (fn [code & words] (trouble/trouble code (str/join words) e))]
    (cond
      (is? SslAuthenticationException) (trouble :log-unreachable "No TLS connection to Kafka at " at ": " (trouble/said e))
      (is? AuthenticationException) (trouble :log-denied "Kafka at " at " does not let this node in: " (ex-message cause))
      (is? AuthorizationException) (trouble :log-denied "This node may not use the topic " topic " at " at ": " (ex-message cause))
      (is? InvalidReplicationFactorException)
      (trouble :log-unfit "Kafka at " at " cannot keep the topic " topic " " replication " times: " (ex-message cause))
      (is? UnsupportedVersionException) (trouble :log-unfit "Kafka at " at " is too old: " (ex-message cause))
      (is? TimeoutException RetriableException) (trouble :log-unreachable "Kafka cannot be reached at " at ": " (ex-message cause))
      :else (trouble :log-unfit "Kafka cannot be used at " at ": " (trouble/said e)))))

(defn- topic-config
  "The required settings of a topic: records are never deleted or compacted, the broker sets their times, and two replicas hold every acknowledged record."
  [replication]
  {"message.timestamp.type" "LogAppendTime"
   "cleanup.policy" "delete"
   "retention.ms" "-1"
   "retention.bytes" "-1"
   "min.insync.replicas" (str (max 1 (dec (long replication))))})

(defn- describe ^TopicDescription [^AdminClient admin topic]
  (try
    (let [^Collection topics [topic]]
      (get @(.allTopicNames (.describeTopics admin topics)) topic))
    (catch ExecutionException e
      (when-not (instance? UnknownTopicOrPartitionException (.getCause e))
        (throw e)))))

(defn- make! [^AdminClient admin {:strs [topic replication]}]
  (try
    @(.all (.createTopics admin [(.configs (NewTopic. ^String topic (int 1) (short replication)) (topic-config replication))]))
    (catch ExecutionException e
      (when-not (instance? TopicExistsException (.getCause e))
        (throw e)))))

(defn- made
  "Waits for the new topic: brokers learn of it one after the other."
  [admin topic]
  (loop [left 100]
    (or (describe admin topic)
        (when (pos? left)
          (Thread/sleep 100)
          (recur (dec left))))))

(defn- settings-of [^AdminClient admin topic]
  (let [resource (ConfigResource. ConfigResource$Type/TOPIC topic)
        ^Config config (get @(.all (.describeConfigs admin [resource])) resource)]
    (into {} (map (fn [^org.apache.kafka.clients.admin.ConfigEntry entry] [(.name entry) (.value entry)])) (.entries config))))

(defn- for-ever? [text] (or (= "-1" text) (= (str Long/MAX_VALUE) text)))

(defn- wrong-settings
  "Describes the settings of a topic that would lose or change transactions."
  [settings wanted]
  (for [[k least] wanted
        :let [found (get settings k)]
        :when (not (case k
                     ("retention.ms" "retention.bytes") (for-ever? found)
                     "min.insync.replicas" (<= (parse-long least) (parse-long found))
                     (= least found)))]
    (str k "=" found " (it must be " least ")")))

(defn- check-topic! [admin {:strs [brokers topic replication create] :as place}]
  (let [at (str/join "," brokers)
        found (or (describe admin topic)
                  (when create
                    (make! admin place)
                    (made admin topic)))
        unfit (fn [& words] (throw (trouble/trouble :log-unfit (str "The topic " topic " at " at " " (str/join words)))))]
    (when-not found
      (throw (trouble/trouble :log-missing (str "There is no topic " topic " at " at))))
    (let [partitions (.partitions ^TopicDescription found)
          copies (count (.replicas ^TopicPartitionInfo (first partitions)))
          wrong (wrong-settings (settings-of admin topic) (topic-config replication))]
      (cond
        (not= 1 (count partitions)) (unfit "has " (count partitions) " partitions: a log has one, or its transactions have no order")
        (< copies replication) (unfit "is kept " copies " times, and " replication " were asked for")
        (seq wrong) (unfit "has " (str/join ", " wrong))))))

(defn- check-broker! [^AdminClient admin]
  ;; This request is sent first: a broker that is too old for the later ones does not know it either.
  @(.featureMetadata (.describeFeatures admin)))

(deftype ^:private KafkaLog [log ^AdminClient admin ^TopicPartition partition]
  db/TxLog
  (submit-tx [this events] (db/submit-tx this events {}))
  (submit-tx [_ events options]
    (let [sent (db/submit-tx log events options)]
      (delay
        (try
          @sent
          (catch ExecutionException e
            (if (instance? RecordTooLargeException (.getCause e))
              (throw (refusal/refuse 413 {:error (str "A transaction of " (count events) " operations is more than one record of Kafka may hold")}))
              (throw e)))))))
  (open-tx-log [_ after-tx-id options] (db/open-tx-log log after-tx-id options))
  (subscribe [_ after-tx-id f] (db/subscribe log after-tx-id f))
  (latest-submitted-tx [_]
    ;; XTDB's own function makes a new consumer for each call.
    (let [^ListOffsetsResult$ListOffsetsResultInfo end (get @(.all (.listOffsets admin {partition (OffsetSpec/latest)})) partition)]
      (when (pos? (.offset end))
        {::xt/tx-id (dec (.offset end))})))
  Closeable
  (close [_]
    (xio/try-close log)
    (.close admin (Duration/ofSeconds 5))))

(defn- open [{:strs [topic] :as place} config]
  (let [admin (AdminClient/create ^Map config)]
    (try
      (check-broker! admin)
      (check-topic! admin place)
      (->KafkaLog (kafka/->tx-log {:kafka-config config
                                   :tx-topic-opts {:topic-name topic, :create-topics? false}
                                   :poll-wait-duration (Duration/ofSeconds 1)})
                  admin
                  (TopicPartition. topic 0))
      (catch Throwable e
        (.close admin (Duration/ofSeconds 1))
        (throw e)))))

(defn ->tx-log
  "The log of `xtdb.kafka` in an existing topic whose settings lose nothing. With `create`, a missing topic is made.
  Throws exceptions of `front.shared.trouble`."
  {::sys/args {:place {:required? true}}}
  [{:keys [place]}]
  (try
    (open place (config place))
    (catch ConfigException e
      (throw (unusable place e)))
    (catch KafkaException e
      ;; If a client cannot be made, the cause has the reason.
      (throw (if (some #(instance? ConfigException %) (trouble/causes e)) (unusable place e) (failure place e))))
    (catch ExecutionException e
      (throw (failure place e)))))

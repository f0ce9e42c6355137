(ns front.shared.postgres
  "Connections to a PostgreSQL server, which is checked before use, and the log in it."
  (:require [clojure.string :as str]
            [front.shared.secret :as secret]
            [front.shared.trouble :as trouble]
            [xtdb.db :as db]
            [xtdb.io :as xio]
            [xtdb.jdbc :as jdbc]
            [xtdb.jdbc.psql :as psql]
            [xtdb.system :as sys]
            [xtdb.tx.subscribe :as subscribe])
  (:import (com.zaxxer.hikari HikariConfig HikariDataSource)
           (com.zaxxer.hikari.pool HikariPool$PoolInitializationException)
           (java.io Closeable)
           (java.net ConnectException UnknownHostException)
           (java.sql Connection SQLException SQLTransientException)
           (java.time Duration)
           (javax.net.ssl SSLException)
           (javax.sql DataSource)
           (org.postgresql.ds PGSimpleDataSource)
           (xtdb.jdbc HikariConnectionPool)))

(set! *warn-on-reflection* true)

(def ^:private oldest-version
  "PostgreSQL's developers no longer maintain earlier versions."
  13)
(def ^:private most-connections 10)
(def ^:private connect-seconds 10)
(def ^:private answer-seconds
  "The time limit for one answer of the server. It is long because a submit waits for the documents of all other submits."
  60)
(def ^:private poll
  "The interval between two polls of the log."
  (Duration/ofMillis 50))

(defn- place
  "The address of a database for messages, always without the password."
  [{:strs [hosts name user]}]
  (str user "@" (str/join "," (map (fn [{:strs [host port]}] (str host ":" port)) hosts)) "/" name))

(defn- set-parameter! [^PGSimpleDataSource source k v]
  (try
    (.setProperty source ^String k ^String v)
    (catch SQLException e
      (throw (trouble/trouble :log-unfit (str "The connection parameter " k " cannot be used (" (trouble/said e) ")") e)))))

(defn- data-source ^PGSimpleDataSource [{:strs [hosts name user parameters] :as database}]
  (let [source (doto (PGSimpleDataSource.)
                 (.setServerNames (into-array String (map #(get % "host") hosts)))
                 (.setPortNumbers (int-array (map #(get % "port") hosts)))
                 (.setDatabaseName name)
                 (.setUser user)
                 (.setPassword (secret/password database))
                 (.setConnectTimeout connect-seconds)
                 (.setSocketTimeout answer-seconds)
                 (.setTcpKeepAlive true)
                 (.setApplicationName "xtdb"))]
    (run! (fn [[k v]] (set-parameter! source k v)) parameters)
    source))

(defn- caused-by? [e classes]
  (some (fn [cause] (some #(instance? % cause) classes)) (trouble/causes e)))

(defn- failure
  "The meaning of a refused connection, by PostgreSQL's error code."
  [database ^SQLException e]
  (let [at (place database)
        state (or (.getSQLState e) "")
        said (trouble/said e)
        trouble (fn [code & words] (trouble/trouble code (str/join words) e))]
    (cond
      (= "3D000" state) (trouble :log-missing "There is no database at " at ": " said)
      (str/starts-with? state "28") (trouble :log-denied "PostgreSQL does not let " at " in: " said)
      (= "42501" state) (trouble :log-denied "The user of " at " may not do what is needed: " said)
      (str/starts-with? state "53") (trouble :log-unreachable "PostgreSQL has no room for a connection of " at ": " said)
      (str/starts-with? state "57P") (trouble :log-unreachable "PostgreSQL is starting or stopping at " at ": " said)
      (caused-by? e [SSLException]) (trouble :log-unreachable "No TLS connection to " at ": " said)
      (caused-by? e [UnknownHostException]) (trouble :log-unreachable "No host of that name for " at ": " said)
      (or (str/starts-with? state "08") (caused-by? e [ConnectException SQLTransientException]))
      (if (str/includes? said "password")
        (trouble :log-denied "PostgreSQL does not let " at " in: " said)
        (trouble :log-unreachable "PostgreSQL cannot be reached at " at ": " said))
      :else (trouble :log-unfit "PostgreSQL cannot be used at " at ": " said))))

(defn- check-server! [^Connection connection database]
  (let [meta (.getMetaData connection)
        version (.getDatabaseMajorVersion meta)]
    (when (< version oldest-version)
      (throw (trouble/trouble :log-unfit (str "PostgreSQL " (.getDatabaseProductVersion meta) " at " (place database)
                                              " is too old: version " oldest-version " or later is needed"))))
    (with-open [statement (.createStatement connection)
                answer (.executeQuery statement "SELECT pg_is_in_recovery()")]
      (.next answer)
      (when (.getBoolean answer 1)
        (throw (trouble/trouble :log-unfit (str (place database) " is a standby, which takes no writes. Name the primary, or several hosts with"
                                                " targetServerType=primary")))))))

(defn- pool ^HikariDataSource [source]
  (HikariDataSource. (doto (HikariConfig.)
                       (.setDataSource source)
                       (.setPoolName "postgres")
                       (.setMaximumPoolSize most-connections)
                       (.setMinimumIdle 1)
                       (.setConnectionTimeout (* 1000 (long connect-seconds))))))

(defn ->connection-pool
  "A pool for `xtdb.jdbc` on a server that was checked: it can be reached, is new enough and accepts writes. A missing table is made.
  Throws exceptions of `front.shared.trouble`."
  {::sys/args {:database {:required? true}}}
  [{:keys [database]}]
  (let [source (data-source database)
        dialect (psql/->dialect {})]
    (try
      (with-open [connection (.getConnection source)]
        (check-server! connection database))
      (let [pool (pool source)]
        (try
          (jdbc/setup-schema! dialect pool)
          (jdbc/->HikariConnectionPool pool dialect)
          (catch Throwable e
            (.close pool)
            (throw e))))
      (catch SQLException e
        (throw (failure database e)))
      (catch HikariPool$PoolInitializationException e
        (throw (if-let [cause (first (filter #(instance? SQLException %) (trouble/causes e)))]
                 (failure database cause)
                 e))))))

(defn- remembering
  "The same connections. The last connection that a thread took stays in `taken`."
  ^DataSource [^DataSource pool ^ThreadLocal taken]
  (reify DataSource
    (getConnection [_]
      (let [connection (.getConnection pool)]
        (.set taken connection)
        connection))
    (getConnection [_ user password] (.getConnection pool user password))))

(deftype ^:private PostgresLog [log ^ThreadLocal taken]
  db/TxLog
  (submit-tx [_ events] (db/submit-tx log events))
  (submit-tx [_ events options] (db/submit-tx log events options))
  (open-tx-log [_ after-tx-id options]
    (try
      (db/open-tx-log log after-tx-id options)
      (catch Throwable e
        ;; XTDB leaves the connection open: after ten such failures the pool would have none left.
        (some-> ^Connection (.get taken) xio/try-close)
        (throw e))
      (finally (.remove taken))))
  (latest-submitted-tx [_] (db/latest-submitted-tx log))
  (subscribe [this after-tx-id f]
    ;; XTDB's own log polls ten times a second and ignores the setting.
    (subscribe/handle-polling-subscription this after-tx-id {:poll-sleep-duration poll} f))
  Closeable
  (close [_] (xio/try-close log)))

(defn ->tx-log
  "The log of `xtdb.jdbc`, but it always returns its connections to the pool and polls more often."
  {::sys/deps {:connection-pool nil}}
  [{:keys [^HikariConnectionPool connection-pool]}]
  (let [taken (ThreadLocal.)]
    (->PostgresLog (jdbc/->tx-log {:connection-pool (update connection-pool :pool remembering taken), :fetch-size 1024})
                   taken)))

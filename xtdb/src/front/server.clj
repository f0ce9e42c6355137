(ns front.server
  "The Jetty server: the handler behind one connector, on a unix socket or on TCP at the loopback address."
  (:require [front.activity :as activity]
            [front.handler :as handler]
            [front.socket :as socket])
  (:import (java.nio.file Files Path)
           (org.eclipse.jetty.server AbstractConnector ConnectionFactory Handler Handler$Abstract HttpConfiguration HttpConnectionFactory
                                     Request Request$Handler Response Server ServerConnector)
           (org.eclipse.jetty.server.handler GracefulHandler)
           (org.eclipse.jetty.unixdomain.server UnixDomainServerConnector)
           (org.eclipse.jetty.util BufferUtil Callback)
           (org.eclipse.jetty.util.thread QueuedThreadPool)))

(set! *warn-on-reflection* true)

(def ^:private most-threads
  "A few threads suffice: they pass requests on and never wait."
  16)
(def ^:private most-waiting
  "The maximum number of connections that wait to be accepted; further ones are refused."
  1024)

(def ^:private largest-head 65536)
(def ^:private connection-idle-ms 120000)
(def ^:private stop-ms 3000)

(defn- connection-factories []
  (let [config (doto (HttpConfiguration.)
                 (.setRequestHeaderSize largest-head)
                 (.setSendServerVersion false)
                 (.setSendXPoweredBy false))]
    (into-array ConnectionFactory [(HttpConnectionFactory. config)])))

(defn- unix-connector ^UnixDomainServerConnector [server path]
  (socket/clear! path)
  (doto (UnixDomainServerConnector. ^Server server ^"[Lorg.eclipse.jetty.server.ConnectionFactory;" (connection-factories))
    (.setUnixDomainPath path)
    (.setAcceptQueueSize most-waiting)))

(defn- tcp-connector ^ServerConnector [server host port]
  (doto (ServerConnector. ^Server server ^"[Lorg.eclipse.jetty.server.ConnectionFactory;" (connection-factories))
    (.setHost (or host "127.0.0.1"))
    (.setPort port)
    (.setAcceptQueueSize most-waiting)))

(defn- front-handler ^Handler [context]
  (proxy [Handler$Abstract] []
    (handle [^Request request ^Response response ^Callback callback]
      (activity/track! (:activity context) request)
      ;; A long await reads and writes nothing and must not be ended for that. A client that stops in the middle of a body must be.
      (.addIdleTimeoutListener request (reify java.util.function.Predicate (test [_ _] (activity/transfers? request))))
      (handler/handle context request response callback)
      true)))

(defn- bare-errors ^Request$Handler []
  (reify Request$Handler
    (handle [_ _request response callback]
      (.write ^Response response true BufferUtil/EMPTY_BUFFER ^Callback callback)
      true)))

(defn- new-server ^Server [context]
  (let [threads (doto (QueuedThreadPool. (int most-threads) (int 4))
                  (.setName "front-http")
                  (.setDaemon true))]
    (doto (Server. threads)
      (.setHandler ^Handler (GracefulHandler. (front-handler context)))
      (.setErrorHandler (bare-errors))
      (.setStopTimeout stop-ms))))

(defrecord Listening [^Server server ^Path socket port])

(defn start!
  "Listens on `:socket` (a path), or on `:port` (0 picks one) of `:host` (default: the loopback address). Throws IOException if it cannot listen."
  [context {:keys [^Path socket host port]}]
  (let [server (new-server context)
        ^AbstractConnector connector (if socket (unix-connector server socket) (tcp-connector server host port))]
    (.setIdleTimeout connector connection-idle-ms)
    (.addConnector server connector)
    (try
      (.start server)
      (catch Throwable e
        (.stop server)
        (throw e)))
    (when socket
      (socket/make-private! socket))
    (->Listening server socket (when-not socket (.getLocalPort ^ServerConnector connector)))))

(defn stop!
  "Briefly lets running requests finish, then stops listening and removes the socket."
  [{:keys [^Server server ^Path socket]}]
  (.stop server)
  (when socket
    (Files/deleteIfExists socket)))

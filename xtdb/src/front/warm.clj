(ns front.warm
  "A trial run that loads the classes that a real run uses, for the class-data archive."
  (:require [clojure.string :as str]
            [xtdb.api :as xt])
  (:import (java.io ByteArrayOutputStream Closeable)
           (java.net StandardProtocolFamily UnixDomainSocketAddress)
           (java.nio ByteBuffer)
           (java.nio.channels Channels SocketChannel)
           (java.nio.charset StandardCharsets)
           (java.nio.file Files Path)
           (java.nio.file.attribute FileAttribute)))

(set! *warn-on-reflection* true)

(defn- temporary-folder ^Path []
  (Files/createTempDirectory "front-warm" (make-array FileAttribute 0)))

(defn- delete-tree! [^Path folder]
  (doseq [^java.io.File file (reverse (file-seq (.toFile folder)))]
    (.delete file)))

(defn- exchange
  "Sends one request on a new connection and returns the whole answer as text."
  [^Path socket method target content-type ^String body]
  (with-open [channel (SocketChannel/open StandardProtocolFamily/UNIX)]
    (.connect channel (UnixDomainSocketAddress/of socket))
    (let [bytes (.getBytes (or body "") StandardCharsets/UTF_8)
          head (str method " /_xtdb" target " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: " content-type
                    "\r\nContent-Type: " content-type "\r\nContent-Length: " (alength bytes) "\r\n\r\n")]
      (.write channel (ByteBuffer/wrap (.getBytes head StandardCharsets/UTF_8)))
      (.write channel (ByteBuffer/wrap bytes))
      (let [out (ByteArrayOutputStream.)]
        (.transferTo (Channels/newInputStream channel) out)
        (.toString out StandardCharsets/UTF_8)))))

(def ^:private requests
  [["GET" "/status" "application/edn" nil]
   ["POST" "/submit-tx" "application/edn" "{:tx-ops [[:xtdb.api/put {:xt/id \"warm\" :n 1 :nested {\"a\" [1.5 true nil]}}]]}"]
   ["POST" "/submit-tx" "application/transit+json" "[\"^ \",\"~:tx-ops\",[[\"~:xtdb.api/put\",[\"^ \",\"~:xt/id\",\"warm-2\",\"~:n\",2]]]]"]
   ["POST" "/submit-tx" "application/json" "{\"tx-ops\":[[\"match\",\"none\",null],[\"put\",{\"xt/id\":\"warm-3\"}]]}"]
   ["GET" "/tx-committed?tx-id=2&await-tx-id=2" "application/edn" nil]
   ["GET" "/entity?eid=warm" "application/transit+json" nil]
   ["GET" "/entity?eid=warm&history=true&sort-order=asc&with-docs=true" "application/json" nil]
   ["GET" "/entity-tx?eid=warm" "application/edn" nil]
   ["GET" "/db" "application/edn" nil]
   ["POST" "/query" "application/edn"
    "{:query {:find [?e (pull ?e [*])] :in [[?e ...] ?n] :where [[?e :n ?m] [(>= ?m ?n)]] :order-by [[?e :asc]] :limit 10} :in-args [[\"warm\" \"warm-2\"] 1]}"]
   ["POST" "/query" "application/transit+json"
    "[\"^ \",\"~:query\",[\"^ \",\"~:find\",[\"~$e\"],\"~:where\",[[\"~$e\",\"~:xt/id\"]]]]"]
   ["GET" "/tx-log?with-ops%3F=true" "application/edn" nil]
   ["GET" "/latest-completed-tx" "application/json" nil]
   ["GET" "/latest-submitted-tx" "application/edn" nil]
   ["GET" "/attribute-stats" "application/edn" nil]
   ["GET" "/recent-queries" "application/edn" nil]
   ["GET" "/query?query-edn=%7B%7D" "application/edn" nil]])

(defn- ask-all! [socket]
  (doseq [[method target content-type body] requests
          :let [answer (exchange socket method target content-type body)]]
    (when-not (re-find #"^HTTP/1.1 (200|202|400)" answer)
      (throw (ex-info (str "Warming up failed: " method " " target ": " (first (str/split-lines answer))) {})))))

(defn- try-rocksdb! [^Path folder]
  (let [store (fn [db-dir] {:kv-store {:xtdb/module 'front.checked-store/->kv-store, :db-dir (.toFile (.resolve folder ^String db-dir))}})]
    (with-open [^Closeable node (xt/start-node {:xtdb/tx-log (store "log")
                                                :xtdb/document-store (store "docs")
                                                :xtdb/index-store (store "index")})]
      (xt/await-tx node (xt/submit-tx node [[::xt/put {:xt/id "warm"}]]))
      (xt/entity (xt/db node) "warm"))))

(defn run
  "Opens the front with these flags on a temporary socket, sends each kind of request once, tries RocksDB in a temporary folder, and closes."
  [{:keys [open close] :as flags}]
  (let [folder (temporary-folder)
        socket (.resolve folder "s")]
    (try
      (let [front (open (-> flags (dissoc :port :token-file) (assoc :socket socket)))]
        (try
          (ask-all! socket)
          (finally
            (close front))))
      (try-rocksdb! folder)
      (finally
        (delete-tree! folder)))))

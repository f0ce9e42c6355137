;; Makes a topic: its broker, its name, its partitions, and settings as key=value.
(import '(java.util Collection Map Optional)
        '(org.apache.kafka.clients.admin AdminClient NewTopic))

(let [[broker topic partitions & settings] *command-line-args*
      ^Map config {"bootstrap.servers" broker}
      new-topic (.configs (NewTopic. ^String topic (Optional/of (Integer/valueOf ^String partitions)) (Optional/empty))
                          (into {} (map #(vec (.split ^String % "=" 2))) settings))]
  (with-open [admin (AdminClient/create config)]
    @(.all (.createTopics admin ^Collection [new-topic]))))

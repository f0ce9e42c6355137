;; Makes a topic (make BROKER NAME PARTITIONS KEY=VALUE…), or removes one (remove BROKER NAME).
(import '(java.util Collection Map Optional)
        '(org.apache.kafka.clients.admin AdminClient NewTopic))

(let [[verb broker topic partitions & settings] *command-line-args*
      ^Map config {"bootstrap.servers" broker}
      ^Collection topics [topic]]
  (with-open [admin (AdminClient/create config)]
    (if (= "remove" verb)
      @(.all (.deleteTopics admin topics))
      (let [new-topic (.configs (NewTopic. ^String topic (Optional/of (Integer/valueOf ^String partitions)) (Optional/empty))
                                (into {} (map #(vec (.split ^String % "=" 2))) settings))
            ^Collection new-topics [new-topic]]
        @(.all (.createTopics admin new-topics))))))

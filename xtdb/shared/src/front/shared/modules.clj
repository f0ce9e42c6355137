(ns front.shared.modules
  "Loads every namespace that a shared log's configuration names only at run time."
  (:require front.shared.kafka
            front.shared.log
            front.shared.postgres))

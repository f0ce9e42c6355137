(ns front.shared.modules
  "Loads every namespace that the configurations of a shared log name only at run time."
  (:require front.shared.kafka
            front.shared.log
            front.shared.postgres))

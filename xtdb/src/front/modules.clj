(ns front.modules
  "Loads every XTDB namespace that a configuration names only at run time.

  XTDB resolves its modules by symbol while it starts. Naming them here puts them into the ahead-of-time build;
  a build that lacks one compiles it at each start, or fails."
  (:require front.checked-store
            front.documents
            xtdb.bus
            xtdb.cache
            xtdb.cache.lru
            xtdb.cache.nop
            xtdb.checkpoint
            xtdb.document-store
            xtdb.kv.document-store
            xtdb.kv.index-store
            xtdb.kv.tx-log
            xtdb.mem-kv
            xtdb.node
            xtdb.query
            xtdb.rocksdb
            xtdb.tx))

/** All time limits of `src/client`, in milliseconds. */
export const TIME_LIMITS = {
  /**
   * Opening a session waits this long for its sources to be read. The rest follows in the
   * background.
   */
  resume: 1_000,
  /**
   * Opening, forking and reading history wait this long for acknowledged writes to reach the
   * database.
   */
  delivery: 10_000,
  /**
   * Opening a session waits this long for other living processes to deliver its records. Then this
   * process delivers them too.
   */
  othersFirst: 1_000,
  /** Closing a client waits this long for deliveries. The rest stays in the journal. */
  close: 5_000,
  /**
   * Assembling a context waits this long for the database to have every step. Then it uses this
   * process's knowledge.
   */
  drain: 2_000,
  /** The same limit, if only the database has some of the context's contents. */
  drainForContents: 60_000,
  /**
   * Recording a call waits this long for the look-up of its id, if the database has not answered
   * yet or is down.
   */
  callId: 250,
  /** The same limit, if the database is up: a slow answer must give the same id as a quick one. */
  callIdOfSlow: 10_000,
  /**
   * An optimistic context waits this long for the check for other writers. If it takes longer, the
   * next context uses the result.
   */
  foreignWrites: 100,
  /** Maximum age of a check for other writers that contexts may reuse. */
  foreignWritesFresh: 50,
  /**
   * An optimistic context waits this long for other clients' writes, and for files just mentioned
   * or changed.
   */
  optimisticRead: 250,
  /** The delivery gate stays closed this long for an announced model whose call does not come. */
  announcedModel: 20,
  /** Recording a step waits this long while hundreds of steps are in delivery. */
  pace: 250,
  /** Maximum time that the delivery gate delays a write. */
  gate: 100,
  /** Polling interval for other processes' journals during a takeover. */
  otherJournals: 25,
  /** Tracking changes are collected this long before they are published. */
  publishTracking: 250,
} as const;

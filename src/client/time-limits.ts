/** How long a client waits for what, in milliseconds. Nothing else of `src/client` holds a limit of its own. */
export const TIME_LIMITS = {
  /** Opening a session waits so long for its sources to be read; the rest follows in the background. */
  resume: 1_000,
  /** Opening, forking and reading history wait so long for what was acknowledged to reach the database. */
  delivery: 10_000,
  /** Opening a session waits so long for other living processes to deliver what they hold of it; then this one delivers it, too. */
  othersFirst: 1_000,
  /** Closing a client waits so long for what was acknowledged to reach the database; the rest stays in the journal. */
  close: 5_000,
  /** Assembling a context waits so long for the database to have every step; then it is assembled from what this process knows. */
  drain: 2_000,
  /** The same where a context would lack contents that only the database has. */
  drainForContents: 60_000,
  /** Recording a call waits so long for the database to say whether another chat has the call's id, where the database has not answered yet or is away. */
  callId: 250,
  /** The same where the database answers: a slow answer gives the same id as a quick one. */
  callIdOfSlow: 10_000,
  /** An optimistic context waits so long for the answer whether somebody else wrote; the next context has the answer otherwise. */
  foreignWrites: 100,
  /** An answer whether somebody else wrote serves every context of so long a time. */
  foreignWritesFresh: 50,
  /** An optimistic context waits so long for what somebody else wrote, and for files that were only mentioned or changed just now. */
  optimisticRead: 250,
  /** The delivery gate stays closed so long for a model that was announced and does not ask. */
  announcedModel: 20,
  /** Recording a step waits so long while hundreds of steps are on their way to a database that takes them. */
  pace: 250,
  /** The delivery gate holds a write back for so long at most. */
  gate: 100,
  /** Taking a session over looks at the journals of other processes at this interval until they are delivered. */
  otherJournals: 25,
  /** Changes of what is tracked are collected for so long before they are published. */
  publishTracking: 250,
} as const;

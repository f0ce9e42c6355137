/** Every time limit of this room, in milliseconds unless the name says another unit. */
export const TIME_LIMITS = {
  /** `java -version` answers at once; only a machine that swaps needs longer. */
  javaVersionMs: 20_000,
  /** Maven fetches about 100 libraries, on the first start only. */
  mavenMs: 600_000,
  /** Compiling the front with all that it requires takes half a minute on two free cores. */
  compileMs: 600_000,
  /** The trial run of the node that makes the class-data archive takes some seconds. */
  archiveMs: 180_000,
  /** How long a process waits for another one that builds, starts or stops the node: the longest first start one can imagine. */
  lockMs: 900_000,
  /** Default of `readyTimeoutMs`: how long a start may take until the node answers, without the one-time build. */
  readyMs: 60_000,
  /** Default of `idleExitSeconds`: how long a node runs without a request before it stops itself. */
  idleExitSeconds: 1_800,
  /** How long a node that was found may take to say its status before it is asked again. */
  probeMs: 10_000,
  /** The same for `palimpsest node status`, where somebody waits. */
  statusProbeMs: 5_000,
  /** How long a node may take to put its index aside for a checkpoint: it links files, and writes what it has in memory. */
  checkpointMs: 600_000,
  /** How long a JVM may take to close before its supervisor kills it; XTDB itself waits up to ten seconds for a clean close. */
  frontStopMs: 20_000,
  /** How long a process of the node may take to end before `node stop` kills it: its supervisor waits for the JVM. */
  processEndMs: 25_000,
  /** How long the system may take to remove a killed process. */
  killedMs: 5_000,
  /** A JVM that stayed up for so long is healthy again: its next crash counts as a first one. */
  healthyMs: 60_000,
  /** The pause before the second start after crashes in a row; it doubles with each further crash. */
  firstRestartMs: 500,
  /** The longest pause between two starts. */
  longestRestartMs: 30_000,
  /** The longest pause between two looks at whether a full disk has room again. */
  longestRoomLookMs: 5_000,
  /** How often a supervisor marks its installation as used. */
  touchMs: 86_400_000,
  /** How long an installation stays in the cache although nothing has started from it. */
  unusedInstallationMs: 30 * 86_400_000,
  /** A draft older than this was left by a build that died. */
  draftMs: 86_400_000,
} as const;

/** All time limits of the node, in milliseconds unless the name says another unit. */
export const TIME_LIMITS = {
  /** Limit of `java -version`, which answers at once except on a machine that swaps. */
  javaVersionMs: 20_000,
  /** Limit of Maven, which fetches about 100 libraries on the first start. */
  mavenMs: 600_000,
  /**
   * Limit of compiling the front with its dependencies. It takes half a minute on two free cores.
   */
  compileMs: 600_000,
  /**
   * Limit of the trial run of the node that makes the class-data archive. It takes some seconds.
   */
  archiveMs: 180_000,
  /**
   * Limit of that run at the lowest priority, when it can take minutes. No process waits for it.
   */
  idleArchiveMs: 1_800_000,
  /**
   * Maximum wait for another process that builds, starts or stops the node. A first start can take
   * long.
   */
  lockMs: 900_000,
  /**
   * Default of `readyTimeoutMs`: limit of a start until the node answers, without the one-time
   * build.
   */
  readyMs: 60_000,
  /**
   * Default of `idleExitSeconds`: how long a node runs without a request before it stops itself.
   */
  idleExitSeconds: 1_800,
  /** Limit of one status request to a node before it is repeated. */
  probeMs: 10_000,
  /** The same limit for `palimpsest node status`, where a user waits. */
  statusProbeMs: 5_000,
  /** Limit for a node to copy its index for a checkpoint. It flushes its memory and links files. */
  checkpointMs: 600_000,
  /**
   * Limit for a JVM to close before its supervisor kills it. XTDB itself waits up to ten seconds
   * for a clean close.
   */
  frontStopMs: 20_000,
  /**
   * Limit for a process of the node to end before `node stop` kills it. The supervisor waits for
   * the JVM.
   */
  processEndMs: 25_000,
  /** Limit for the system to remove a killed process. */
  killedMs: 5_000,
  /** Uptime from which a JVM counts as healthy again. Its next crash then counts as the first. */
  healthyMs: 60_000,
  /** The delay before the second restart in a row; it doubles with each further crash. */
  firstRestartMs: 500,
  /** The maximum delay between two starts. */
  longestRestartMs: 30_000,
  /** The maximum interval between two checks of a full disk. */
  longestRoomLookMs: 5_000,
  /** Interval at which a supervisor marks its installation as used. */
  touchMs: 600_000,
  /** How long an unused installation stays in the cache. */
  unusedInstallationMs: 7 * 86_400_000,
  /** Age from which a draft counts as left by a dead build. */
  draftMs: 86_400_000,
} as const;

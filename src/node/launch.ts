import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import * as z from 'zod';
import { parseJson } from '../process/owned-file.js';
import { identifyProcess, type ProcessIdentity } from '../process/process-identity.js';
import { archivePlanSchema } from './archive-plan.js';
import { SWEEP_ORDER } from './erasure-sign.js';
import { NodeError } from './errors.js';
import type { LogFile } from './log-file.js';
import { type Indexing, indexingSchema, NODE_PROFILES, type NodeProfile } from './node-state.js';

const planSchema = z.object({
  dataDir: z.string(),
  profile: z.enum(NODE_PROFILES),
  java: z.string(),
  javaMajor: z.int(),
  jars: z.array(z.string()).min(1),
  /** The class-data archive; null if the JVM could not create one. */
  archive: z.string().nullable(),
  /** The folder in the cache whose use the supervisor records. */
  cached: z.string(),
  /** The archive that the supervisor makes for later starts; null if there is none to make. */
  missing: archivePlanSchema.nullable(),
  configFile: z.string(),
  /** The node's settings file for its shared log; null without one. */
  settingsFile: z.string().nullable(),
  /** Path of the socket; null requests TCP on the loopback address. */
  socketPath: z.string().nullable(),
  /** File with the bearer token; null without TCP. */
  tokenFile: z.string().nullable(),
  /** Seconds without a request after which the node stops itself; 0 means never. */
  idleExitSeconds: z.int().nonnegative(),
  heapMegabytes: z.int().positive(),
});

/**
 * The input of a supervisor, with which it starts the JVM repeatedly. Plain data for a command
 * line.
 */
export type LaunchPlan = Readonly<z.infer<typeof planSchema>>;

/**
 * Parses a plan from the command line of a supervisor.
 * @throws {NodeError} `start-failed` if the text is invalid
 */
export function parseLaunchPlan(text: string): LaunchPlan {
  try {
    return planSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new NodeError(
      'start-failed',
      'The plan of this supervisor cannot be read. Start nodes with: palimpsest node start',
      { cause },
    );
  }
}

/** Default heap per profile, in megabytes. */
export const DEFAULT_HEAP_MEGABYTES: Readonly<Record<NodeProfile, number>> = {
  memory: 1024,
  rocksdb: 1024,
  postgres: 1024,
  kafka: 1024,
};

const PROFILE_FLAGS: Readonly<Record<NodeProfile, readonly string[]>> = {
  // A memory node usually serves tests. With only the C1 compiler, it starts sooner and leaves
  // cores to the tests.
  memory: ['-XX:TieredStopAtLevel=1'],
  rocksdb: [],
  postgres: [],
  kafka: [],
};

/** Flags of all our JVMs, including the one that creates the archive. */
export function commonJvmFlags(javaMajor: number): readonly string[] {
  return [
    '-XX:+UseSerialGC',
    '-Duser.timezone=UTC',
    '-Dfile.encoding=UTF-8',
    '-Djava.awt.headless=true',
    // Writes failures to the log instead of a separate file.
    '-Dclojure.main.report=stderr',
    // Without these flags, Java 24 and later warn about native code and about agrona's memory
    // access.
    ...(javaMajor >= 24 ? ['--enable-native-access=ALL-UNNAMED', '--sun-misc-unsafe-memory-access=allow'] : []),
  ];
}

/**
 * Returns whether an archive is an ahead-of-time cache, which halves the CPU time of a start. Java
 * 25 and later make one in a single run, without an archive of Java's own classes.
 */
export const isAheadOfTime = (archive: string): boolean => archive.endsWith('.aot');

function archiveFlags(archive: string | null): readonly string[] {
  if (archive === null) return [];
  return isAheadOfTime(archive) ? [`-XX:AOTCache=${archive}`] : ['-Xshare:auto', `-XX:SharedArchiveFile=${archive}`];
}

/**
 * Flags that start the optimising compiler (C2) twenty times later than usual. The first start of a
 * node, without an archive, is often followed by an import. C2 would take a third of its CPU time.
 */
const LATE_OPTIMISING = [
  '-XX:Tier4InvocationThreshold=100000',
  '-XX:Tier4MinInvocationThreshold=12000',
  '-XX:Tier4CompileThreshold=300000',
  '-XX:Tier4BackEdgeThreshold=800000',
] as const;

/** Returns the arguments of `java` for one start of the node. */
export function frontArguments(plan: LaunchPlan): readonly string[] {
  const logs = join(plan.dataDir, 'logs');
  return [
    ...commonJvmFlags(plan.javaMajor),
    ...PROFILE_FLAGS[plan.profile],
    ...(plan.archive === null && plan.profile === 'rocksdb' ? LATE_OPTIMISING : []),
    '-Xms64m',
    `-Xmx${plan.heapMegabytes}m`,
    '-XX:MaxDirectMemorySize=512m',
    // Returns heap to the system after a large request.
    '-XX:MinHeapFreeRatio=15',
    '-XX:MaxHeapFreeRatio=40',
    '-XX:+ExitOnOutOfMemoryError',
    `-XX:ErrorFile=${join(logs, 'hs_err_%p.log')}`,
    // If the archive does not fit this Java, Java starts without it.
    ...archiveFlags(plan.archive),
    `-Djava.io.tmpdir=${join(plan.dataDir, 'tmp')}`,
    '-cp',
    plan.jars.join(delimiter),
    'clojure.main',
    '-m',
    'front.main',
    '--config',
    plan.configFile,
    ...(plan.settingsFile === null ? [] : ['--settings', plan.settingsFile]),
    ...(plan.profile === 'memory' ? [] : ['--data', plan.dataDir]),
    '--lock',
    join(plan.dataDir, 'node.lock'),
    ...(plan.profile === 'memory' ? [] : ['--sweep', join(plan.dataDir, SWEEP_ORDER)]),
    ...(plan.socketPath === null
      ? ['--port', '0', '--stop-on-request', ...(plan.tokenFile === null ? [] : ['--token-file', plan.tokenFile])]
      : ['--socket', plan.socketPath]),
    '--idle-exit',
    String(plan.idleExitSeconds),
    '--start-on-input',
  ];
}

/** The line by which the JVM reports that it is ready. */
const readyLineSchema = z.object({
  ready: z.literal(true),
  pid: z.int(),
  socket: z.string().nullable(),
  port: z.int().nullable(),
  version: z.string(),
});
/** The front's output when it is ready, as one line of JSON. */
export type ReadyLine = Readonly<z.infer<typeof readyLineSchema>>;

/** Parses the ready line; undefined for any other line. */
export function parseReadyLine(line: string): ReadyLine | undefined {
  return parseJson(line, readyLineSchema);
}

/** The line by which a starting JVM reports its indexing progress. */
const startingLineSchema = indexingSchema
  .extend({ starting: z.literal(true) })
  .transform(({ indexed, of }) => ({ indexed, of }));

/** Parses a line with indexing progress; undefined for any other line. */
export function parseStartingLine(line: string): Indexing | undefined {
  return parseJson(line, startingLineSchema);
}

/** The line by which a node reports that it accepts no more writes, with the reason. */
const failedLineSchema = z.object({ failed: z.literal(true), reason: z.string() });

/** Parses the reason why a node accepts no more writes; undefined for any other line. */
export function parseFailedLine(line: string): string | undefined {
  return parseJson(line, failedLineSchema)?.reason;
}

/** The exit of the JVM and its last output. */
export interface FrontExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last lines of its log. */
  readonly tail: string;
}

/** A running JVM. */
export interface FrontProcess {
  /** Undefined if it ended before it could be identified. */
  readonly identity: Promise<ProcessIdentity | undefined>;
  /** Resolves when it has ended; never rejects. */
  readonly ended: Promise<FrontExit>;
  /**
   * Lets the JVM open its database; idempotent. Call it once the JVM's identity is on disk. If this
   * process dies before that, the JVM exits, because no other process could find and stop it.
   */
  proceed(): void;
  kill(signal: NodeJS.Signals): void;
}

const TAIL_LINES = 60;

/**
 * Starts the JVM of a plan with its output in the log. `onIndexing` is called as its index grows,
 * `onReady` when it is ready, `onFailed` when it accepts no more writes.
 */
export function startFront(
  plan: LaunchPlan,
  options: {
    readonly env: NodeJS.ProcessEnv;
    readonly log: LogFile;
    onIndexing(indexing: Indexing): void;
    onReady(line: ReadyLine): void;
    onFailed(reason: string): void;
  },
): FrontProcess {
  const child = spawn(plan.java, [...frontArguments(plan)], {
    cwd: plan.dataDir,
    stdio: ['pipe', 'pipe', 'pipe'],
    windowsHide: true,
    // Without this limit, RocksDB's memory is spread over one arena per thread.
    env: { ...options.env, MALLOC_ARENA_MAX: '2' },
  });
  // If the JVM has already ended, a write to its input fails.
  child.stdin.on('error', () => undefined);
  const tail: string[] = [];
  const note = (line: string): void => {
    options.log.write(`${line}\n`);
    tail.push(line);
    if (tail.length > TAIL_LINES) tail.shift();
  };
  createInterface({ input: child.stderr }).on('line', note);
  createInterface({ input: child.stdout }).on('line', (line) => {
    const indexing = parseStartingLine(line);
    if (indexing !== undefined) return options.onIndexing(indexing);
    const failure = parseFailedLine(line);
    if (failure !== undefined) return options.onFailed(failure);
    const ready = parseReadyLine(line);
    if (ready === undefined) note(line);
    else options.onReady(ready);
  });
  const ended = new Promise<FrontExit>((resolve) => {
    child.on('error', (error) => resolve({ code: 127, signal: null, tail: [...tail, error.message].join('\n') }));
    // `close` is emitted after the last line; `exit` may be emitted earlier.
    child.on('close', (code, signal) => resolve({ code, signal, tail: tail.join('\n') }));
  });
  return {
    identity: child.pid === undefined ? Promise.resolve(undefined) : identifyProcess(child.pid),
    ended,
    proceed: () => void child.stdin.end('\n'),
    kill: (signal) => void child.kill(signal),
  };
}

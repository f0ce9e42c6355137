import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { identifyProcess } from '../process/process-identity.js';
import { SYSTEM } from '../process/system.js';
import { systemCode } from '../process/system-error.js';
import { pollUntil } from '../process/within-limit.js';
import { defined } from '../values/defined.js';
import { chooseRuntime, type NodeRuntime } from './choose-runtime.js';
import type { DataFolder } from './data-folder.js';
import { NodeError, type NodeErrorCode } from './errors.js';
import { DEFAULT_HEAP_MEGABYTES, type LaunchPlan } from './launch.js';
import { readLogTail } from './log-file.js';
import {
  announceState,
  type Indexing,
  type NodeProfile,
  type NodeState,
  type OwnNodeAddress,
  readState,
  startingState,
} from './node-state.js';
import { type PackageFiles, packageFiles } from './package-files.js';
import { makeRuntimeFolder, socketIn } from './runtime-folder.js';
import { type ChosenLog, type SharedLog, sharedLogFile } from './shared-log.js';
import { NO_SPACE_EXIT } from './supervise.js';
import { TIME_LIMITS } from './time-limits.js';

/** Options for starting a node if none runs. */
export interface StartOptions {
  /** Default: the profile of the data folder, or `rocksdb` for a new one. */
  readonly profile?: NodeProfile;
  /** The log that the node shares with others; default: the one that the data folder names. */
  readonly log?: SharedLog;
  /**
   * The environment of the node, which may contain the database password of `log`; default: this
   * process's environment.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /**
   * A checkpoint, or a folder or `s3://BUCKET/PREFIX` of checkpoints. If the data folder has no
   * index, the node starts with a copy of the checkpoint. Only for a shared log. For a bucket,
   * `environment` must contain the AWS variables.
   */
  readonly restoreFrom?: string;
  /**
   * Time limit from the start of the JVM to its first answer; default 60 s. The one-time build of
   * the node does not count.
   */
  readonly readyTimeoutMs?: number;
  /** Time without a request after which the node stops itself; 0 means never; default 1800. */
  readonly idleExitSeconds?: number;
  /** Maximum heap of the JVM in megabytes. */
  readonly heapMegabytes?: number;
  /**
   * `unix` (the default, except on Windows) or `tcp` on the loopback address with a bearer token.
   */
  readonly transport?: 'unix' | 'tcp';
  readonly signal?: AbortSignal;
  /** Cache folder for built nodes; default `~/.cache/palimpsest`. */
  readonly cacheDir?: string;
  /** Folder for a socket if the data folder's path is too long for one (the XDG runtime folder). */
  readonly runtimeDir?: string;
  /** Java's home folder, searched before the PATH. Ignored if this platform's package has Java. */
  readonly javaHome?: string;
  /** Called before slow steps. */
  onProgress?(message: string): void;
}

const CONFIG_FILES: Readonly<Record<NodeProfile, string>> = {
  memory: 'memory.edn',
  rocksdb: 'xtdb.edn',
  postgres: join('shared', 'postgres.edn'),
  kafka: join('shared', 'kafka.edn'),
};

/** A node that answers. */
export interface RunningNode {
  readonly pid: number;
  readonly address: OwnNodeAddress;
  readonly state: NodeState;
}

/** Returns the running node of a state; undefined while it is not ready. */
export function runningNode(state: NodeState | undefined): RunningNode | undefined {
  return state?.phase === 'ready' && state.jvm !== null && state.address !== null
    ? { pid: state.jvm.pid, address: state.address, state }
    : undefined;
}

/** Returns the error of a state in phase `failed`. */
export function failureOf(state: NodeState): NodeError {
  // The cast is safe, because only this program writes the state file, with these codes.
  return new NodeError(
    (state.failure?.code ?? 'start-failed') as NodeErrorCode,
    state.failure?.message ?? 'The node did not start. See: palimpsest node logs',
  );
}

/**
 * Returns the error of a node that was not ready in time. The node keeps starting, because indexing
 * a long log takes long.
 */
function readyTimeout(folder: DataFolder, limitMs: number, indexing: Indexing | undefined): NodeError {
  const reached = indexing === undefined ? '' : ` (${indexing.indexed} of ${indexing.of} transactions are indexed)`;
  return new NodeError(
    'ready-timeout',
    `The node of ${folder.dir} was not ready within ${limitMs / 1000} s and is still starting${reached}. ` +
      'Look at it with: palimpsest node logs. Then try again, or wait longer with: ' +
      'palimpsest node start --ready-timeout SECONDS',
  );
}

/** The options of one start, combined with the data folder's own settings. */
export interface ChosenStart extends StartOptions {
  readonly chosen: ChosenLog;
}

async function makePlan(
  folder: DataFolder,
  { frontDir }: PackageFiles,
  options: ChosenStart & { readonly runtime: NodeRuntime },
): Promise<LaunchPlan> {
  const { runtime } = options;
  const { profile, log } = options.chosen;
  const runtimeFolder = await makeRuntimeFolder(folder.dir, options.runtimeDir);
  const isTcp = (options.transport ?? SYSTEM.nodeTransport) === 'tcp';
  const tokenFile = join(runtimeFolder, 'token');
  if (isTcp) {
    await rm(tokenFile, { force: true });
    await writeFile(tokenFile, randomBytes(32).toString('base64url'), { mode: 0o600 });
  }
  return {
    dataDir: folder.dir,
    profile,
    java: runtime.java.command,
    javaMajor: runtime.java.major,
    jars: [...runtime.jars],
    archive: runtime.archive,
    cached: runtime.cached,
    missing: runtime.missing,
    configFile: join(frontDir, CONFIG_FILES[profile]),
    settingsFile: log === undefined ? null : sharedLogFile(folder.dir),
    socketPath: isTcp ? null : socketIn(runtimeFolder),
    tokenFile: isTcp ? tokenFile : null,
    idleExitSeconds: options.idleExitSeconds ?? TIME_LIMITS.idleExitSeconds,
    heapMegabytes: options.heapMegabytes ?? DEFAULT_HEAP_MEGABYTES[profile],
  };
}

/** Minimum interval between two reports of the indexing progress, in milliseconds. */
const REPORT_INDEXING_MS = 2_000;

/**
 * Polls a starting node until `ask` answers, and reports its indexing progress. A limit from the
 * caller applies to the whole wait. The default limit applies to the time without progress.
 * @throws {NodeError} `ready-timeout`
 */
export async function pollStart<T>(
  folder: DataFolder,
  options: StartOptions,
  ask: (seen: (state: NodeState) => void) => Promise<T | undefined>,
): Promise<T> {
  const limitMs = options.readyTimeoutMs ?? TIME_LIMITS.readyMs;
  let indexing: Indexing | undefined;
  let reportedAt = Number.NEGATIVE_INFINITY;
  const seen = (state: NodeState): void => {
    indexing = state.indexing ?? undefined;
    if (indexing === undefined || performance.now() - reportedAt < REPORT_INDEXING_MS) return;
    reportedAt = performance.now();
    options.onProgress?.(`Indexing: ${indexing.indexed} of ${indexing.of} transactions …`);
  };
  for (;;) {
    const before = indexing?.indexed;
    const answer = await pollUntil(() => ask(seen), { limitMs, signal: options.signal });
    if (answer !== undefined) return answer;
    if (options.readyTimeoutMs !== undefined || indexing?.indexed === before)
      throw readyTimeout(folder, limitMs, indexing);
  }
}

/**
 * Starts the node of a data folder under its own detached supervisor and waits until it is ready.
 * The caller must hold the start lock, and no node may run.
 * @throws {NodeError}
 */
export async function startNode(folder: DataFolder, options: ChosenStart): Promise<RunningNode> {
  const files = packageFiles();
  const runtime = await chooseRuntime(files, {
    isShared: options.chosen.log !== undefined,
    memoryConfig: join(files.frontDir, CONFIG_FILES.memory),
    cacheDir: options.cacheDir,
    javaHome: options.javaHome,
    signal: options.signal,
    onProgress: (message) => options.onProgress?.(message),
  });
  const plan = await makePlan(folder, files, { ...options, runtime });
  await rm(folder.stateFile, { force: true });
  await mkdir(join(folder.dir, 'logs'), { recursive: true, mode: 0o700 });
  options.onProgress?.('Starting XTDB …');
  const logFd = openSync(folder.logFile, 'a', 0o600);
  const supervisor = spawn(process.execPath, [files.cli, 'node', 'supervise', '--plan', JSON.stringify(plan)], {
    cwd: folder.dir,
    ...defined({ env: options.environment }),
    detached: true,
    windowsHide: true,
    stdio: ['ignore', 'ignore', logFd],
  });
  closeSync(logFd);
  let ended: string | undefined;
  let isDiskFull = false;
  supervisor.on('error', (error) => {
    ended = `${systemCode(error) ?? 'error'}: ${error.message}`;
  });
  supervisor.on('exit', (code, signal) => {
    isDiskFull = code === NO_SPACE_EXIT;
    ended = signal === null ? `exit code ${code}` : `signal ${signal}`;
  });
  supervisor.unref();
  // Other processes must see the node even if this one stops waiting before the supervisor writes
  // its state.
  const identity = supervisor.pid === undefined ? undefined : await identifyProcess(supervisor.pid);
  if (identity !== undefined) await announceState(folder.stateFile, startingState(identity, plan.profile));
  const outcome = await pollStart(folder, options, async (seen) => {
    const hasEnded = ended;
    const state = await readState(folder.stateFile);
    if (state !== undefined && state.supervisor.pid === supervisor.pid) {
      seen(state);
      if (state.phase === 'failed') return failureOf(state);
      const node = runningNode(state);
      if (node !== undefined) return node;
    }
    if (hasEnded === undefined) return undefined;
    if (isDiskFull)
      return new NodeError(
        'no-space',
        `The disk of ${folder.dir} is full. Free some space on it, then start the node again.`,
      );
    const tail = (await readLogTail(folder.logFile, 8)) ?? '';
    return new NodeError(
      'start-failed',
      `The supervisor of the node of ${folder.dir} ended at once (${hasEnded}). The end of its log:\n${tail}`,
    );
  });
  if (outcome instanceof NodeError) throw outcome;
  return outcome;
}

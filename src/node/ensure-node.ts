import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { namedLockOwner, withNamedLock } from '../process/lock.js';
import { rememberCheckpoints } from './checkpoint.js';
import { checkpointStore } from './checkpoint-store.js';
import {
  type DataFolder,
  nodeFailure,
  openDataFolder,
  raiseDataFormat,
  requireLogFormat,
  sweepDataFolder,
} from './data-folder.js';
import { NodeError } from './errors.js';
import {
  countUsers,
  type NodeState,
  type OwnNodeAddress,
  type Registration,
  readLiveness,
  registerUser,
  removeDeadUsers,
} from './node-state.js';
import { probeNode } from './probe-node.js';
import { refuseOverIndex, restoreCheckpoint } from './restore-checkpoint.js';
import {
  type ChosenLog,
  chooseLog,
  describeSharedLog,
  forgetSharedLog,
  readSharedLog,
  writeSharedLog,
} from './shared-log.js';
import {
  type ChosenStart,
  failureOf,
  pollStart,
  type RunningNode,
  runningNode,
  type StartOptions,
  startNode,
} from './start-node.js';
import { endProcess, stopNodeOf } from './stop-node.js';
import { TIME_LIMITS } from './time-limits.js';

async function checkProfile(folder: DataFolder, state: NodeState, { profile, log }: ChosenLog): Promise<void> {
  const running = log === undefined ? undefined : await readSharedLog(folder.dir);
  const isOther = log !== undefined && running !== undefined && describeSharedLog(log) !== describeSharedLog(running);
  if (state.profile === profile && !isOther) return;
  const [runs, asked] = isOther
    ? [`over ${describeSharedLog(running)}`, describeSharedLog(log)]
    : [`of profile ${state.profile}`, `profile ${profile}`];
  throw new NodeError(
    'profile-mismatch',
    `A node ${runs} runs on ${folder.dir}, and ${asked} was asked for. Stop it with: ` +
      'palimpsest node stop, or name another folder with --data.',
  );
}

async function checkAnswer(folder: DataFolder, node: RunningNode): Promise<RunningNode | undefined> {
  const answer = await probeNode(node.address, TIME_LIMITS.probeMs);
  if (answer?.ingesterFailed === true) {
    throw new NodeError(
      'ingester-failed',
      `The node of ${folder.dir} answers, but its indexer has failed: it would serve stale data. ` +
        'Its supervisor starts it again as soon as its disk has room; ' +
        'see palimpsest node status and palimpsest node logs.',
    );
  }
  // Another version of the program may have started the node.
  requireLogFormat(answer?.log?.format, folder.dir);
  return answer === undefined ? undefined : node;
}

/**
 * Returns the running node of a data folder once it answers; undefined if there is none. Waits for
 * a node that is starting or restarting, and stops an orphan that does not answer.
 * @throws {NodeError} `profile-mismatch`, `ingester-failed`, `ready-timeout`, `aborted` or the
 *   failure of the awaited start
 */
async function findNode(folder: DataFolder, options: ChosenStart): Promise<RunningNode | undefined> {
  let waited = false;
  const found = await pollStart<RunningNode | 'none'>(folder, options, async (seen) => {
    const liveness = await readLiveness(folder);
    if (liveness.kind === 'none') {
      if (waited && liveness.state?.phase === 'failed') throw failureOf(liveness.state);
      return 'none';
    }
    // The profile of a stopping node does not matter, because it will be replaced.
    if (liveness.state.phase !== 'stopping') await checkProfile(folder, liveness.state, options.chosen);
    waited = true;
    seen(liveness.state);
    const candidate = runningNode(liveness.state);
    const node = candidate === undefined ? undefined : await checkAnswer(folder, candidate);
    if (node !== undefined) return node;
    if (liveness.kind === 'supervised') return undefined;
    if (liveness.state.jvm !== null) await endProcess(liveness.state.jvm);
    return 'none';
  });
  return found === 'none' ? undefined : found;
}

/** Options for the node of a data folder. */
export interface EnsureNodeOptions extends StartOptions {
  readonly dataDir: string;
  /**
   * The effect on the node when this process leaves. `leave` (default): the node keeps running.
   * `stop-last`: it stops if no other process uses it.
   */
  readonly onExit?: 'leave' | 'stop-last';
}

/** A running node with this process registered as its user. */
export interface NodeHandle {
  readonly address: OwnNodeAddress;
  /** Pid of the JVM when the handle was created; it changes after a crash. */
  readonly pid: number;
  /** Whether this call started the node; false if it already ran. */
  readonly started: boolean;
  readonly profile: RunningNode['state']['profile'];
  /** XTDB's version. */
  readonly version: string | null;
  /** Ends the use; idempotent. With `stop-last` it resolves once the node has stopped. */
  release(): Promise<void>;
}

/** Copies the index from a checkpoint if requested. Returns the function that undoes it. */
async function restoreIndex(
  folder: DataFolder,
  { restoreFrom, environment, onProgress }: StartOptions,
): Promise<() => Promise<void>> {
  if (restoreFrom === undefined) return async () => undefined;
  onProgress?.('Copying the index from a checkpoint …');
  const restored = await restoreCheckpoint(await checkpointStore(restoreFrom, environment ?? {}), folder.dir);
  // `dirname` also works for an address like s3://BUCKET/PREFIX/NAME.
  await rememberCheckpoints(folder.dir, dirname(restored.path));
  return () => rm(join(folder.dir, 'index'), { recursive: true, force: true });
}

/**
 * Starts a node. If the start with a new shared log fails, the data folder forgets the log and the
 * copied index.
 */
async function startOver(folder: DataFolder, options: ChosenStart): Promise<RunningNode> {
  const { log } = options.chosen;
  if (log === undefined && options.restoreFrom !== undefined) {
    throw new NodeError(
      'profile-mismatch',
      `${folder.dir} has its own database, whose index cannot come from a checkpoint. ` +
        'Leave out --restore, or name a shared log (--profile, --log).',
    );
  }
  if (log === undefined) return startNode(folder, options);
  const takeBack = await restoreIndex(folder, options);
  // A damaged file also shows that the folder was used with a log. After a failed start, such a
  // folder keeps `log`, so that it does not count as one with its own database.
  const before = await readSharedLog(folder.dir).catch(() => log);
  await writeSharedLog(folder.dir, log);
  try {
    const node = await startNode(folder, options);
    await raiseDataFormat(folder.dir);
    return node;
  } catch (error) {
    const failed = (await readLiveness(folder)).kind === 'none';
    if (failed) await (before === undefined ? forgetSharedLog(folder.dir) : writeSharedLog(folder.dir, before));
    if (failed) await takeBack();
    throw error;
  }
}

async function findOrStart(
  folder: DataFolder,
  options: ChosenStart,
): Promise<{ readonly node: RunningNode; readonly started: boolean }> {
  const found = async (node: RunningNode): Promise<{ readonly node: RunningNode; readonly started: boolean }> => {
    if (options.restoreFrom !== undefined) await refuseOverIndex(folder.dir);
    return { node, started: false };
  };
  // Without a lock, no process is starting or stopping this node. This process is already
  // registered. So a process that stops the node as its last user sees the registration, or this
  // process sees its lock.
  if ((await namedLockOwner(folder.startLock)) === undefined) {
    const node = await findNode(folder, options);
    if (node !== undefined) return found(node);
  }
  const onWait = (pid: number): void =>
    options.onProgress?.(`Process ${pid} is starting or stopping the node; waiting for it …`);
  return withNamedLock(folder.startLock, { limitMs: TIME_LIMITS.lockMs, signal: options.signal, onWait }, async () => {
    const node = await findNode(folder, options);
    if (node !== undefined) return found(node);
    // Cleans up here, because occasional clean-up suffices and a start is slow anyway.
    await removeDeadUsers(folder);
    await sweepDataFolder(folder.dir);
    return { node: await startOver(folder, options), started: true };
  });
}

async function leave(folder: DataFolder, registration: Registration, onExit: 'leave' | 'stop-last'): Promise<void> {
  await registration.remove();
  if (onExit === 'leave') return;
  try {
    await withNamedLock(folder.startLock, { limitMs: TIME_LIMITS.lockMs }, async () => {
      if ((await countUsers(folder)) === 0) await stopNodeOf(folder);
    });
  } catch (error) {
    throw nodeFailure(folder.dir, error);
  }
}

/**
 * Finds or starts the node of a data folder and waits until it answers. All processes that use the
 * folder share one node. If several processes start it at the same time, one does and the others
 * wait. The very first start builds the node (about a minute). Later starts take some seconds.
 * Files that a crash left (lock, socket, state) are repaired.
 *
 * @throws {NodeError} see its codes
 *
 * @example
 * ```ts
 * const node = await ensureNode({ dataDir: '.palimpsest', onProgress: show });
 * await node.release();
 * ```
 */
export async function ensureNode(options: EnsureNodeOptions): Promise<NodeHandle> {
  const folder = await openDataFolder(options.dataDir);
  const registration = await registerUser(folder).catch((error: unknown) => {
    throw nodeFailure(folder.dir, error);
  });
  try {
    const chosen = await chooseLog(folder, options);
    const { node, started } = await findOrStart(folder, { ...options, chosen });
    let leaving: Promise<void> | undefined;
    return {
      address: node.address,
      pid: node.pid,
      started,
      profile: node.state.profile,
      version: node.state.version,
      release: () => {
        leaving ??= leave(folder, registration, options.onExit ?? 'leave');
        return leaving;
      },
    };
  } catch (error) {
    await registration.remove();
    throw nodeFailure(folder.dir, error);
  }
}

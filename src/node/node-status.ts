import { resolve } from 'node:path';
import { withinLimit } from '../process/within-limit.js';
import { type FoundCheckpoint, listCheckpoints, rememberedCheckpoints, type StoreEnvironment } from './checkpoint.js';
import { checkpointStore } from './checkpoint-store.js';
import { dataFolderAt, diskRoom, findDataFolder } from './data-folder.js';
import { readLogTail } from './log-file.js';
import {
  countUsers,
  type Indexing,
  type NodePhase,
  type NodeProfile,
  type NodeState,
  readLiveness,
  readState,
  type ShownAddress,
  sharesLog,
  shownAddress,
} from './node-state.js';
import { type LogHealth, probeNode } from './probe-node.js';
import { describeSharedLog, readSharedLog } from './shared-log.js';
import { TIME_LIMITS } from './time-limits.js';

/** The newest checkpoint of a node's shared log. */
export interface NewestCheckpoint {
  /** The store of the log's checkpoints. */
  readonly folder: string;
  /** The newest checkpoint. Null if there is none, or if the store cannot be read. */
  readonly newest: Pick<FoundCheckpoint, 'path' | 'txId' | 'txTime' | 'host'> | null;
}

async function newestCheckpoint(
  dir: string,
  log: string | undefined,
  environment: StoreEnvironment,
): Promise<NewestCheckpoint | null> {
  const folder = await rememberedCheckpoints(dir);
  if (folder === undefined) return null;
  // Limits the wait, because a shared folder or a bucket may be unavailable.
  const found = await withinLimit(
    checkpointStore(folder, environment)
      .then((store) => listCheckpoints(store, log))
      .catch(() => []),
    TIME_LIMITS.statusProbeMs,
    () => [],
  );
  const [newest] = found;
  if (newest === undefined) return { folder, newest: null };
  const { path, txId, txTime, host } = newest;
  return { folder, newest: { path, txId, txTime, host } };
}

/** A report on the node of a data folder. */
export type NodeStatusReport = {
  readonly dataDir: string;
  /** Whether its disk has too little space for a restart. */
  readonly isDiskFull: boolean;
  /** Free bytes that a restart needs: the content of its logs is rewritten. */
  readonly leastRoom: number;
} & (
  | {
      readonly running: false;
      /** Why the last start failed; null if it succeeded. */
      readonly failure: NodeState['failure'];
    }
  | (Pick<NodeState, 'phase' | 'profile' | 'version' | 'startedAt' | 'restarts' | 'frontExit'> & {
      readonly running: true;
      /** Pid of the JVM; null if none runs. */
      readonly pid: number | null;
      readonly supervisorPid: number;
      /**
       * False if the supervisor was killed: the node works, but no process would restart it after a
       * crash.
       */
      readonly supervised: boolean;
      readonly address: ShownAddress | null;
      /** Number of processes that use it. */
      readonly users: number;
      /** Whether it answers now. */
      readonly answers: boolean;
      readonly ingesterFailed: boolean;
      /**
       * Why its indexer has stopped, as one line. Null while it runs, or if the node gives no
       * reason.
       */
      readonly ingesterError: string | null;
      readonly storeFailed: boolean;
      /** Describes its shared log without secrets; null if it shares none. */
      readonly sharedLog: string | null;
      /** The reported state of that log; null if it shares none or does not answer. */
      readonly log: LogHealth | null;
      /** The newest checkpoint of that log; null if the data folder knows no checkpoint store. */
      readonly checkpoint: NewestCheckpoint | null;
      /** The indexing progress of a starting node; null once it is ready. */
      readonly indexing: Indexing | null;
    })
);

/**
 * Returns whether a node has stopped accepting writes. Its supervisor restarts it once there is
 * space.
 */
export const hasFailedWrites = (status: NodeStatusReport): boolean =>
  status.running && (status.ingesterFailed || status.storeFailed);

/**
 * Describes a problem with the writes of a node and its remedy for people; undefined without one.
 */
export function writeTrouble(status: NodeStatusReport): string | undefined {
  const room = `Free at least ${Math.ceil(status.leastRoom / 1_048_576)} MiB on the disk of ${status.dataDir}`;
  if (!hasFailedWrites(status))
    return status.isDiskFull ? `ITS DISK IS FULL. ${room}, or it will accept no more writes` : undefined;
  const why = status.running && status.ingesterError !== null ? ` (${status.ingesterError})` : '';
  const failed = status.running && status.ingesterFailed ? `HAS STOPPED INDEXING${why}` : 'ACCEPTS NO MORE WRITES';
  if (status.running && !(status.supervised && status.profile !== 'memory'))
    return `${failed}: stop it, then start it (palimpsest node stop, palimpsest node start)`;
  return status.isDiskFull
    ? `${failed}: its disk is full. ${room}: then it restarts automatically, and acknowledged steps are delivered`
    : `${failed}: it is restarting`;
}

/**
 * Describes a node's shared log for people: its lag, or that it does not answer. Undefined if it
 * shares none.
 */
export function logText(status: NodeStatusReport): string | undefined {
  if (!status.running || status.sharedLog === null) return undefined;
  if (status.log === null) return status.sharedLog;
  if (!status.log.reachable)
    return (
      `${status.sharedLog}: CANNOT BE REACHED; until it answers, the node answers from its own index and accepts no ` +
      'writes'
    );
  const behind = (status.log.submitted ?? -1) - (status.log.completed ?? -1);
  return (
    `${status.sharedLog}: ` +
    `${behind > 0 ? `the index is ${behind} steps of the log behind` : 'the index is up to date'}`
  );
}

/**
 * Describes the newest checkpoint of a node's log and its age for people; undefined without a
 * checkpoint.
 */
export function checkpointText(status: NodeStatusReport): string | undefined {
  if (!status.running || status.checkpoint === null) return undefined;
  const { folder, newest } = status.checkpoint;
  if (newest === null) return `THERE IS NONE in ${folder}, or it cannot be read`;
  const end = status.log?.submitted ?? undefined;
  const age = end === undefined ? '' : `${Math.max(0, end - newest.txId)} steps of the log behind, `;
  return `${newest.path}: ${age}of a transaction at ${newest.txTime}, by ${newest.host}`;
}

/**
 * Reads the phase from the state file of a data folder without a request to the node; undefined if
 * there is none.
 */
export async function nodePhase(dataDir: string): Promise<NodePhase | undefined> {
  return (await readState(dataFolderAt(dataDir).stateFile))?.phase;
}

/**
 * Returns the profile of the running node of a data folder, without checking whether it answers.
 * Undefined if none runs. Read-only.
 */
export async function runningProfile(dataDir: string): Promise<NodeProfile | undefined> {
  const folder = await findDataFolder(dataDir);
  const liveness = folder === undefined ? undefined : await readLiveness(folder);
  return liveness === undefined || liveness.kind === 'none' ? undefined : liveness.state.profile;
}

/**
 * Inspects the node of a data folder. Read-only. `environment` contains the credentials of the
 * bucket with its checkpoints.
 *
 * @example
 * ```ts
 * const { running } = await nodeStatus('.palimpsest');
 * ```
 */
export async function nodeStatus(dataDir: string, environment: StoreEnvironment = {}): Promise<NodeStatusReport> {
  const folder = await findDataFolder(dataDir);
  const dir = folder?.dir ?? resolve(dataDir);
  const { suffices, least: leastRoom } = await diskRoom(dir);
  const place = { dataDir: dir, isDiskFull: !suffices, leastRoom };
  if (folder === undefined) return { running: false, ...place, failure: null };
  const { kind, state } = await readLiveness(folder);
  if (kind === 'none') return { running: false, ...place, failure: state?.failure ?? null };
  const { address, phase } = state;
  const sharedLog = sharesLog(state.profile) ? await readSharedLog(dir).catch(() => undefined) : undefined;
  const answer =
    phase === 'ready' && address !== null ? await probeNode(address, TIME_LIMITS.statusProbeMs) : undefined;
  return {
    running: true,
    ...place,
    phase,
    pid: state.jvm?.pid ?? null,
    supervisorPid: state.supervisor.pid,
    supervised: kind === 'supervised',
    address: address === null ? null : shownAddress(address),
    profile: state.profile,
    version: state.version,
    startedAt: state.startedAt,
    restarts: state.restarts,
    frontExit: state.frontExit,
    users: await countUsers(folder),
    answers: answer !== undefined,
    ingesterFailed: answer?.ingesterFailed ?? false,
    ingesterError: answer?.ingesterError ?? null,
    storeFailed: answer?.storeFailed ?? false,
    sharedLog: sharedLog === undefined ? null : describeSharedLog(sharedLog),
    log: answer?.log ?? null,
    checkpoint: sharedLog === undefined ? null : await newestCheckpoint(dir, answer?.log?.name, environment),
    indexing: state.indexing ?? null,
  };
}

/** The log of a data folder's node. */
export interface NodeLogs {
  readonly path: string;
  /** The last lines; undefined if no node has run there yet. */
  readonly text: string | undefined;
}

/** Reads the last lines of the log of a data folder's node. */
export async function nodeLogs(dataDir: string, lines = 100): Promise<NodeLogs | undefined> {
  const folder = await findDataFolder(dataDir);
  return folder === undefined ? undefined : { path: folder.logFile, text: await readLogTail(folder.logFile, lines) };
}

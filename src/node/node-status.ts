import { resolve } from 'node:path';
import * as z from 'zod';
import { parseJson } from '../process/owned-file.js';
import { withinLimit } from '../process/within-limit.js';
import { authorisation, loadPools } from '../xtdb/node-pool.js';
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
  type OwnNodeAddress,
  readLiveness,
  readState,
  type ShownAddress,
  sharesLog,
  shownAddress,
} from './node-state.js';
import { describeSharedLog, readSharedLog } from './shared-log.js';
import { TIME_LIMITS } from './time-limits.js';

/** What a node says of itself. */
export interface ProbeAnswer {
  readonly version: string | undefined;
  /** True when its indexer is dead: it still answers queries, from stale data, and takes no more writes. */
  readonly ingesterFailed: boolean;
  /** Why the indexer is dead, as one line; null while it lives, or where the node does not say. */
  readonly ingesterError: string | null;
  /** True when its store has refused a write: it takes no more until it is started again. */
  readonly storeFailed: boolean;
  /** What it says of a log that it shares; undefined where it shares none. */
  readonly log: LogHealth | undefined;
}

/** How a node stands to the log that it shares with others. Transactions are counted in steps of the log, of which they need not take every one. */
export interface LogHealth {
  /** The log's own name, made up when it was begun. */
  readonly name: string;
  /** The format of what is in it; null where the node does not say. */
  readonly format: number | null;
  /** Whether it answered when the node asked last, some seconds ago. */
  readonly reachable: boolean;
  /** The last transaction that was seen in the log; null while there is none. */
  readonly submitted: number | null;
  /** The last one that is in the node's index. */
  readonly completed: number | null;
}

const logSchema = z
  .object({
    name: z.string(),
    format: z.int().nullish(),
    'reachable?': z.boolean(),
    submitted: z.number().nullish(),
    completed: z.number().nullish(),
  })
  .transform((said) => ({
    name: said.name,
    format: said.format ?? null,
    reachable: said['reachable?'],
    submitted: said.submitted ?? null,
    completed: said.completed ?? null,
  }));

const statusSchema = z
  .looseObject({
    version: z.string().optional(),
    'ingesterFailed?': z.boolean().nullish(),
    ingesterFailed: z.boolean().nullish(),
    ingesterError: z.string().nullish(),
    'storeFailed?': z.boolean().nullish(),
    log: logSchema.optional(),
  })
  .transform(({ version, ...said }) => ({
    version,
    ingesterFailed: (said['ingesterFailed?'] ?? said.ingesterFailed) === true,
    ingesterError: said.ingesterError ?? null,
    storeFailed: said['storeFailed?'] === true,
    log: said.log,
  }));

/** Reads the body of `/_xtdb/status` as JSON; undefined when it is none. */
export function parseStatus(body: string): ProbeAnswer | undefined {
  return parseJson(body, statusSchema);
}

/** What a node answers to one request. */
interface NodeAnswer {
  readonly status: number;
  readonly body: string;
}

/** Asks a node one thing, in JSON, over a connection of its own; undefined when it does not answer within the limit. */
export async function askNode(
  address: OwnNodeAddress,
  { limitMs, ...asked }: { readonly method: 'GET' | 'POST'; readonly path: string; readonly limitMs: number },
): Promise<NodeAnswer | undefined> {
  const { exchange, open } = await loadPools();
  const pool = open(address, 1, limitMs);
  const headers = { accept: 'application/json', ...authorisation(address) };
  try {
    const { statusCode, body } = await exchange.call(pool, { ...asked, headers, signal: AbortSignal.timeout(limitMs) });
    return { status: statusCode, body: await body.text() };
  } catch {
    return undefined;
  } finally {
    await pool.destroy();
  }
}

/** Asks a node for its status; undefined when it does not answer properly within the limit. */
export async function probeNode(address: OwnNodeAddress, limitMs: number): Promise<ProbeAnswer | undefined> {
  const answer = await askNode(address, { method: 'GET', path: '/_xtdb/status', limitMs });
  return answer?.status === 200 ? parseStatus(answer.body) : undefined;
}

/** The newest checkpoint of the log that a node shares. */
export interface NewestCheckpoint {
  /** Where the checkpoints of the log are kept. */
  readonly folder: string;
  /** Null where there is none, or the folder cannot be read. */
  readonly newest: Pick<FoundCheckpoint, 'path' | 'txId' | 'txTime' | 'host'> | null;
}

async function newestCheckpoint(dir: string, log: string | undefined, environment: StoreEnvironment): Promise<NewestCheckpoint | null> {
  const folder = await rememberedCheckpoints(dir);
  if (folder === undefined) return null;
  // A folder of other hosts may be away, a bucket too.
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

/** What is known of the node of a data folder. */
export type NodeStatusReport = {
  readonly dataDir: string;
  /** Whether its disk has too little room for it to be started again. */
  readonly isDiskFull: boolean;
  /** Bytes that must be free there for it to be started again: what its logs hold is written anew. */
  readonly leastRoom: number;
} & (
  | {
      readonly running: false;
      /** Why the last start failed; null when it did not. */
      readonly failure: NodeState['failure'];
    }
  | (Pick<NodeState, 'phase' | 'profile' | 'version' | 'startedAt' | 'restarts' | 'frontExit'> & {
      readonly running: true;
      /** Pid of the JVM; null while none runs. */
      readonly pid: number | null;
      readonly supervisorPid: number;
      /** False when the supervisor was killed: the node works, but nobody would start it again after a crash. */
      readonly supervised: boolean;
      readonly address: ShownAddress | null;
      /** Processes that use it. */
      readonly users: number;
      /** Whether it answers just now. */
      readonly answers: boolean;
      readonly ingesterFailed: boolean;
      /** Why its indexer is dead, as one line; null while it lives, or where the node does not say. */
      readonly ingesterError: string | null;
      readonly storeFailed: boolean;
      /** The log that it shares with other nodes, in words without secrets; null where it shares none. */
      readonly sharedLog: string | null;
      /** What it says of that log; null where it shares none or does not answer. */
      readonly log: LogHealth | null;
      /** The newest checkpoint of that log; null where the data folder knows of no folder with checkpoints. */
      readonly checkpoint: NewestCheckpoint | null;
      /** How far the index of a node that starts has come; null once it is ready. */
      readonly indexing: Indexing | null;
    })
);

/** Whether a node takes no more writes until its supervisor has started it again, which it does as soon as there is room. */
export const hasFailedWrites = (status: NodeStatusReport): boolean => status.running && (status.ingesterFailed || status.storeFailed);

/** What is the matter with the writes of a node and what to do, for people; undefined when nothing is. */
export function writeTrouble(status: NodeStatusReport): string | undefined {
  const room = `Free at least ${Math.ceil(status.leastRoom / 1_048_576)} MiB on the disk of ${status.dataDir}`;
  if (!hasFailedWrites(status)) return status.isDiskFull ? `ITS DISK IS FULL. ${room}, or it will take no more writes` : undefined;
  const why = status.running && status.ingesterError !== null ? ` (${status.ingesterError})` : '';
  const failed = status.running && status.ingesterFailed ? `HAS STOPPED INDEXING${why}` : 'TAKES NO MORE WRITES';
  if (status.running && !(status.supervised && status.profile !== 'memory'))
    return `${failed}: stop it, then start it (palimpsest node stop, palimpsest node start)`;
  return status.isDiskFull
    ? `${failed}: its disk is full. ${room}: then it is started again by itself, and what was acknowledged meanwhile is delivered`
    : `${failed}: it is being started again`;
}

/** How a node stands to the log that it shares, for people: the lag, or that the log does not answer; undefined where it shares none. */
export function logText(status: NodeStatusReport): string | undefined {
  if (!status.running || status.sharedLog === null) return undefined;
  if (status.log === null) return status.sharedLog;
  if (!status.log.reachable)
    return `${status.sharedLog}: CANNOT BE REACHED; the node answers from what it has, and takes no writes until it can be`;
  const behind = (status.log.submitted ?? -1) - (status.log.completed ?? -1);
  return `${status.sharedLog}: ${behind > 0 ? `the index is ${behind} steps of the log behind` : 'the index is up to date'}`;
}

/** The newest checkpoint of a node's log and how old it is, for people; undefined where none is kept. */
export function checkpointText(status: NodeStatusReport): string | undefined {
  if (!status.running || status.checkpoint === null) return undefined;
  const { folder, newest } = status.checkpoint;
  if (newest === null) return `THERE IS NONE in ${folder}, or it cannot be read`;
  const end = status.log?.submitted ?? undefined;
  const age = end === undefined ? '' : `${Math.max(0, end - newest.txId)} steps of the log behind, `;
  return `${newest.path}: ${age}of a transaction at ${newest.txTime}, by ${newest.host}`;
}

/** What the state file of a data folder says, without asking the node; undefined where there is none. */
export async function nodePhase(dataDir: string): Promise<NodePhase | undefined> {
  return (await readState(dataFolderAt(dataDir).stateFile))?.phase;
}

/** The profile of the node that runs on a data folder, which is not asked whether it answers; undefined where none runs. Changes nothing there. */
export async function runningProfile(dataDir: string): Promise<NodeProfile | undefined> {
  const folder = await findDataFolder(dataDir);
  const liveness = folder === undefined ? undefined : await readLiveness(folder);
  return liveness === undefined || liveness.kind === 'none' ? undefined : liveness.state.profile;
}

/** Looks at the node of a data folder without changing anything there. `environment` has the credentials of a bucket that its checkpoints are kept in. */
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
  const answer = phase === 'ready' && address !== null ? await probeNode(address, TIME_LIMITS.statusProbeMs) : undefined;
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

/** The log of the node of a data folder. */
export interface NodeLogs {
  readonly path: string;
  /** The last lines; undefined when no node has run there yet. */
  readonly text: string | undefined;
}

/** Reads the last lines of the log of a data folder's node. */
export async function nodeLogs(dataDir: string, lines = 100): Promise<NodeLogs | undefined> {
  const folder = await findDataFolder(dataDir);
  return folder === undefined ? undefined : { path: folder.logFile, text: await readLogTail(folder.logFile, lines) };
}

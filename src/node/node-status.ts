import { resolve } from 'node:path';
import { findDataFolder } from './data-folder.js';
import { readLiveness } from './find-node.js';
import { readLogTail } from './log-file.js';
import { type ProbeAnswer, probeNode } from './probe.js';
import type { NodePhase, NodeProfile, OwnNodeAddress } from './state-file.js';
import { countUsers } from './users.js';

/** What is known of the node of a data folder. */
export type NodeStatusReport =
  | {
      readonly running: false;
      readonly dataDir: string;
      /** Why the last start failed; null when it did not. */
      readonly failure: { readonly code: string; readonly message: string } | null;
    }
  | {
      readonly running: true;
      readonly dataDir: string;
      readonly phase: NodePhase;
      /** Pid of the JVM; null while none runs. */
      readonly pid: number | null;
      readonly supervisorPid: number;
      /** False when the supervisor was killed: the node works, but nobody would start it again after a crash. */
      readonly supervised: boolean;
      readonly address: OwnNodeAddress | null;
      readonly profile: NodeProfile;
      readonly version: string | null;
      readonly startedAt: string;
      readonly restarts: number;
      readonly frontExit: { readonly code: number | null; readonly signal: string | null; readonly at: string } | null;
      /** Processes that use it. */
      readonly users: number;
      /** Whether it answers just now. */
      readonly answers: boolean;
      readonly ingesterFailed: boolean;
    };

/** Looks at the node of a data folder without changing anything there. */
export async function nodeStatus(dataDir: string): Promise<NodeStatusReport> {
  const folder = await findDataFolder(dataDir);
  if (folder === undefined) return { running: false, dataDir: resolve(dataDir), failure: null };
  const { kind, state } = await readLiveness(folder);
  if (kind === 'none') return { running: false, dataDir: folder.dir, failure: state?.failure ?? null };
  const isReady = state.phase === 'ready' && state.address !== null;
  const answer: ProbeAnswer | undefined = isReady && state.address !== null ? await probeNode(state.address, 5_000) : undefined;
  return {
    running: true,
    dataDir: folder.dir,
    phase: state.phase,
    pid: state.jvm?.pid ?? null,
    supervisorPid: state.supervisor.pid,
    supervised: kind === 'supervised',
    address: state.address,
    profile: state.profile,
    version: state.version,
    startedAt: state.startedAt,
    restarts: state.restarts,
    frontExit: state.frontExit,
    users: await countUsers(folder),
    answers: answer !== undefined,
    ingesterFailed: answer?.ingesterFailed ?? false,
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

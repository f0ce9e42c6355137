import type { FilesystemId, SessionId } from '../../src/objects/ids.js';

/** What one process of the workload is told. */
export interface WorkloadPlan {
  readonly dataDir: string;
  /** The addresses of nodes that somebody else runs, as XTDB_URL has them; the node of the data folder where absent. */
  readonly nodeUrl?: string;
  /** The folder of the files that its agents work on. */
  readonly root: string;
  readonly filesystemId: FilesystemId;
  readonly sessions: readonly SessionId[];
  /** Up to which step each session has been checked already. */
  readonly since: Readonly<Record<string, number>>;
  /** Where it says what it was answered. */
  readonly linesFile: string;
  readonly seed: number;
  /** How long the nodes may take to come back while a session is opened, milliseconds; a minute and a half where absent. */
  readonly openLimitMs?: number;
  /** Longest pause between two steps of a session, milliseconds. */
  readonly pauseMs: number;
  /** Takes its sessions over from whichever process has them, and goes on quietly without those that another process takes from it. */
  readonly takeOver?: boolean;
  /** Reads every file once, closes everything and ends, instead of working until it is killed. */
  readonly finish: boolean;
}

/** Names of the files that the agents work on. */
export const FILE_NAMES: readonly string[] = Array.from(
  { length: 24 },
  (_, i) => `${i % 3 === 0 ? 'src/' : ''}file-${i}.ts`,
);

import type { FilesystemId, SessionId } from '../../src/objects/ids.js';

/** The parameters of one workload process. */
export interface WorkloadPlan {
  readonly dataDir: string;
  /**
   * Addresses of nodes that others run, in the format of XTDB_URL; default: the node of the data
   * folder.
   */
  readonly nodeUrl?: string;
  /** The folder of the files that its agents work on. */
  readonly root: string;
  readonly filesystemId: FilesystemId;
  readonly sessions: readonly SessionId[];
  /** The last checked step of each session. */
  readonly since: Readonly<Record<string, number>>;
  /** The file in which it reports the answers that it got. */
  readonly linesFile: string;
  readonly seed: number;
  /** Maximum milliseconds for the nodes to return while a session is opened; default: 90,000. */
  readonly openLimitMs?: number;
  /** Maximum pause between two steps of a session, in milliseconds. */
  readonly pauseMs: number;
  /**
   * Takes its sessions over from any process. Continues silently without a session that another
   * process takes.
   */
  readonly takeOver?: boolean;
  /**
   * Whether it reads every file once, closes everything and ends, instead of working until it is
   * killed.
   */
  readonly finish: boolean;
}

/** Names of the files that the agents work on. */
export const FILE_NAMES: readonly string[] = Array.from(
  { length: 24 },
  (_, i) => `${i % 3 === 0 ? 'src/' : ''}file-${i}.ts`,
);

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
  /** Up to which step each session has been checked already. */
  readonly since: Readonly<Record<string, number>>;
  /** Where it says what it was answered. */
  readonly linesFile: string;
  readonly seed: number;
  /**
   * How long the nodes may take to return while a session is opened, in milliseconds; default:
   * 90,000.
   */
  readonly openLimitMs?: number;
  /** Longest pause between two steps of a session, milliseconds. */
  readonly pauseMs: number;
  /**
   * Takes its sessions over from any process. Continues silently without those that another process
   * takes.
   */
  readonly takeOver?: boolean;
  /** Reads every file once, closes everything and ends, instead of working until it is killed. */
  readonly finish: boolean;
}

/** Names of the files that the agents work on. */
export const FILE_NAMES: readonly string[] = Array.from(
  { length: 24 },
  (_, i) => `${i % 3 === 0 ? 'src/' : ''}file-${i}.ts`,
);

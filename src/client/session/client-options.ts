import type { Durability } from '../../journal/journal.js';
import type { PendingLimits } from '../../journal/record-progress.js';
import type { StepPolicy } from '../../session/step-policy.js';
import type { Telemetry } from '../../telemetry/telemetry.js';
import type { AskedAddress } from '../../xtdb/no-node.js';
import type { FileAccessOptions } from '../file-access.js';
import type { RecordMask } from '../record-mask.js';
import type { TrackingOptions } from '../tracking/tracking.js';

/** The state in which a client closed. */
export interface CloseReport {
  /**
   * Acknowledged steps that the database lacks. They stay in the journal, and the data folder's
   * next client delivers them.
   */
  readonly unflushed: number;
}

/** The settings of a client. */
export interface ContextClientOptions extends FileAccessOptions {
  /**
   * The database's address, or a function that finds it. Called at the first read or write. With
   * `NO_NODE` and `soleWriter`, nothing is stored: sessions end with the client and cannot be
   * forked.
   */
  readonly address: AskedAddress;
  readonly policy?: StepPolicy;
  readonly strict?: boolean;
  readonly shortIds?: boolean;
  /**
   * Data folder for leases and the journal of acknowledged steps. Without it, only the database
   * guards a session's writer, and a step is acknowledged on commit.
   */
  readonly dataDir?: string;
  /** False: no journal in spite of a data folder, as for a database without persistence. */
  readonly journal?: boolean;
  /**
   * Failures that an acknowledged step survives: the death of every process (`process`, the
   * default), or also a power loss (`power`, one sync per step).
   */
  readonly durability?: Durability;
  /**
   * Maximum number and bytes of steps that wait for the database before calls are rejected.
   * Default: 10,000 and 256 MiB.
   */
  readonly queue?: PendingLimits;
  /**
   * Whether and how read files are watched [§5.8]. Default: watched if there is a data folder, as
   * in a long-lived process.
   */
  readonly track?: boolean | Omit<TrackingOptions, 'onNotice'>;
  /**
   * Called with one line about an unreadable part of a dead process's journal, or about a source
   * that cannot be tracked.
   */
  readonly onNotice?: (line: string) => void;
  /**
   * True: also opens sessions that used folders outside this client's roots. Files in those folders
   * stay hidden.
   */
  readonly shareSessions?: boolean;
  /** The name of this process in the errors of processes that try to open its sessions. */
  readonly what?: string;
  /**
   * True: no other client writes this client's sessions, as in a replay. Then contexts come from
   * this process's knowledge where possible. Without a journal, steps are acknowledged before their
   * commit.
   */
  readonly soleWriter?: boolean;
  /**
   * Maximum text in each of two caches, recent versions and texts by hash, in UTF-16 units.
   * Default: 8 Mi.
   */
  readonly keptUnits?: number;
  /** Masks secrets before anything is recorded (decision 0026). Default: nothing is masked. */
  readonly mask?: RecordMask;
  /** Telemetry sink. Default: none. */
  readonly telemetry?: Telemetry;
  /** Returns milliseconds since 1970. Default: the machine's clock. */
  readonly clock?: () => number;
}

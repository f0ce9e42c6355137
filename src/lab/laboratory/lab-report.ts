import type { PolicyFacts } from '../policies/policy.js';
import type { PriceTable } from '../prices/price-table.js';
import type { Calibration } from '../scorecard/calibration.js';
import type { PooledScore } from '../scorecard/pooled.js';
import type { PolicyScore } from '../scorecard/score.js';
import type { LabConfig } from './lab-config.js';

/** A policy's result on one session, or the reason why the session is excluded for the policy. */
export type SessionPolicy =
  | { readonly score: PolicyScore; readonly unsupported?: undefined }
  | { readonly score?: undefined; readonly unsupported: string };

/** A session of a recording. */
export interface LabSession {
  /** The format, the first digits of the recording's hash, and the session's number in it. */
  readonly name: string;
  /**
   * The first digits of a hash of the project's folder, or of the recording's hash if the folder is
   * unknown.
   */
  readonly group: string;
  readonly format: string;
  readonly calls: number;
  readonly turns: number;
  readonly items: number;
  /** The price table of the recorded model. */
  readonly priceTable: string;
  /** Whether the whole recording could be read. */
  readonly complete: boolean;
  readonly losses: number;
  /** Number of tokens of system prompt and tools, as far as the provider's counts show them. */
  readonly fixed: number;
  /** Reasons why the session's figures are limited under every policy. */
  readonly marks: readonly string[];
  readonly calibration?: Calibration;
  /** Results by name of policy. */
  readonly policies: Readonly<Record<string, SessionPolicy>>;
}

/** The sessions that a figure covers: one side of the split, or all. */
export type Side = 'train' | 'test' | 'all';

/** A policy with its figures for each side, over the sessions that are not excluded. */
export interface LabPolicy extends PolicyFacts {
  readonly pooled: Readonly<Partial<Record<Side, PooledScore>>>;
}

/** The settings of a family that the report shows. */
export interface LabFamily {
  readonly family: string;
  readonly kind: LabPolicy['kind'];
  readonly published: string;
  /** The best setting on the training side; absent if the family has only one setting. */
  readonly best?: string;
}

/**
 * The figures of our policy when each project uses the setting that is best on all other projects.
 */
export interface LabLeftOut {
  readonly chosen: readonly { readonly sessions: readonly string[]; readonly policy: string }[];
  readonly pooled: PooledScore;
}

/** The report of a run. Equal recordings and configuration give equal bytes. */
export interface LabReport {
  readonly report: 'laboratory';
  readonly version: 2;
  /** SHA-256 over the sorted hashes of the recordings. */
  readonly corpus: string;
  readonly recordings: number;
  /** Number of recordings that were not scored because the run was interrupted. */
  readonly missing: number;
  /** Number of sessions that were excluded for too few model calls. */
  readonly leftOut: number;
  readonly config: LabConfig;
  readonly prices: {
    readonly asOf: string;
    readonly tables: readonly (Omit<PriceTable, 'models'> & { readonly models: string })[];
  };
  /**
   * The split of the sessions. `by` is `named` if the user named the training recordings. A side
   * may be empty.
   */
  readonly split: {
    readonly by: 'named' | 'project';
    readonly train: readonly string[];
    readonly test: readonly string[];
  };
  readonly policies: readonly LabPolicy[];
  readonly families: readonly LabFamily[];
  readonly leftOutProjects?: LabLeftOut;
  readonly sessions: readonly LabSession[];
}

/** The time that each policy took to make requests. Only this part differs between runs. */
export type LabTimes = Readonly<Record<string, { readonly calls: number; readonly ms: number }>>;

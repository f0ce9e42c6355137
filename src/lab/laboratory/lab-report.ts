import type { ContextPolicy } from '../policies/policy.js';
import type { PriceTable } from '../prices/price-table.js';
import type { Calibration } from '../scorecard/calibration.js';
import type { CrossValidation } from '../scorecard/cross-validation.js';
import type { PooledScore } from '../scorecard/pooled.js';
import type { PolicyScore } from '../scorecard/score.js';
import type { LabConfig } from './lab-config.js';

/** The result of a policy on one session, or why the session does not count for it. */
export type SessionPolicy =
  | { readonly score: PolicyScore; readonly unsupported?: undefined }
  | { readonly score?: undefined; readonly unsupported: string };

/** A session of a recording. */
export interface LabSession {
  /** The format and the first digits of the recording's hash. */
  readonly name: string;
  readonly format: string;
  readonly calls: number;
  readonly turns: number;
  readonly items: number;
  /** The price table of the recorded model. */
  readonly priceTable: string;
  /** Whether all of the recording could be read. */
  readonly complete: boolean;
  readonly losses: number;
  /**
   * The cost of system prompt and tools under the first table, as far as the provider's counts show
   * it. In tokens at the price of a fresh one.
   */
  readonly fixedCost: number;
  /** Limits of the session's figures that apply to every policy. */
  readonly marks: readonly string[];
  readonly calibration?: Calibration;
  /** Results by the name of the policy. */
  readonly policies: Readonly<Record<string, SessionPolicy>>;
}

/** A policy over all sessions that count for it. */
export interface LabPolicy extends Pick<ContextPolicy, 'name' | 'family' | 'about' | 'reach'> {
  readonly pooled?: PooledScore;
}

/** The result of a run. Equal recordings and configuration give equal bytes. */
export interface LabReport {
  readonly report: 'laboratory';
  readonly version: 1;
  /** SHA-256 over the sorted hashes of the recordings. */
  readonly corpus: string;
  readonly recordings: number;
  /** The number of sessions with too few model calls. */
  readonly leftOut: number;
  readonly config: LabConfig;
  readonly prices: {
    readonly asOf: string;
    readonly tables: readonly (Omit<PriceTable, 'models'> & { readonly models: string })[];
  };
  readonly policies: readonly LabPolicy[];
  readonly sessions: readonly LabSession[];
  /**
   * The cross-validation of our own policies, if at least two are compared on at least two
   * sessions.
   */
  readonly crossValidation?: CrossValidation;
}

/** The time to make requests, by policy. Only this part differs between runs. */
export type LabTimes = Readonly<Record<string, { readonly calls: number; readonly ms: number }>>;

import type { ContextPolicy } from '../policies/policy.js';
import type { PriceTable } from '../prices/price-table.js';
import type { Calibration } from '../scorecard/calibration.js';
import type { CrossValidation } from '../scorecard/cross-validation.js';
import type { PooledScore } from '../scorecard/pooled.js';
import type { PolicyScore } from '../scorecard/score.js';
import type { LabConfig } from './lab-config.js';

/** What a policy did to one session, or why the session says nothing about it. */
export type SessionPolicy =
  | { readonly score: PolicyScore; readonly unsupported?: undefined }
  | { readonly score?: undefined; readonly unsupported: string };

/** One session of a recording. */
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
  /** What the system prompt and the tools cost under the first table, as far as the provider's counts tell; tokens at the price of a fresh one. */
  readonly fixedCost: number;
  /** What limits what the session can say, whatever the policy. */
  readonly marks: readonly string[];
  readonly calibration?: Calibration;
  /** By the name of the policy. */
  readonly policies: Readonly<Record<string, SessionPolicy>>;
}

/** One policy over all sessions that say something about it. */
export interface LabPolicy extends Pick<ContextPolicy, 'name' | 'family' | 'about' | 'reach'> {
  readonly pooled?: PooledScore;
}

/** The result of a run: the same bytes whenever and wherever the same recordings are compared with the same configuration. */
export interface LabReport {
  readonly report: 'laboratory';
  readonly version: 1;
  /** SHA-256 over the sorted hashes of the recordings. */
  readonly corpus: string;
  readonly recordings: number;
  /** Sessions with too few model calls. */
  readonly leftOut: number;
  readonly config: LabConfig;
  readonly prices: { readonly asOf: string; readonly tables: readonly (Omit<PriceTable, 'models'> & { readonly models: string })[] };
  readonly policies: readonly LabPolicy[];
  readonly sessions: readonly LabSession[];
  /** Our own policies as they do on sessions that they were not chosen on; where at least two of them are compared on at least two sessions. */
  readonly crossValidation?: CrossValidation;
}

/** How long requests took to be made, by policy; the only part of a run that differs from the next one. */
export type LabTimes = Readonly<Record<string, { readonly calls: number; readonly ms: number }>>;

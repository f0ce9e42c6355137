import type { PolicyFacts } from '../policies/policy.js';
import type { PriceTable } from '../prices/price-table.js';
import type { Calibration } from '../scorecard/calibration.js';
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
  /** The first digits of a hash of its project's folder, or the name of a session without one. */
  readonly group: string;
  readonly format: string;
  readonly calls: number;
  readonly turns: number;
  readonly items: number;
  /** The price table of the recorded model. */
  readonly priceTable: string;
  /** Whether all of the recording could be read. */
  readonly complete: boolean;
  readonly losses: number;
  /** Tokens of system prompt and tools, as far as the provider's counts show them. */
  readonly fixed: number;
  /** Limits of the session's figures that apply to every policy. */
  readonly marks: readonly string[];
  readonly calibration?: Calibration;
  /** Results by the name of the policy. */
  readonly policies: Readonly<Record<string, SessionPolicy>>;
}

/** A side of the split that a figure is from. */
export type Side = 'train' | 'test' | 'all';

/** A policy over the sessions that count for it, by side. */
export interface LabPolicy extends PolicyFacts {
  readonly pooled: Readonly<Partial<Record<Side, PooledScore>>>;
}

/** The settings of a family that the report shows. */
export interface LabFamily {
  readonly family: string;
  readonly kind: LabPolicy['kind'];
  readonly published: string;
  /** The best setting on the training side, if there are several. */
  readonly best?: string;
}

/** Our settings, each chosen on the other projects. */
export interface LabLeftOut {
  readonly chosen: readonly { readonly sessions: readonly string[]; readonly policy: string }[];
  readonly pooled: PooledScore;
}

/** The result of a run. Equal recordings and configuration give equal bytes. */
export interface LabReport {
  readonly report: 'laboratory';
  readonly version: 2;
  /** SHA-256 over the sorted hashes of the recordings. */
  readonly corpus: string;
  readonly recordings: number;
  /** Recordings that an interrupted run did not reach. */
  readonly missing: number;
  /** The number of sessions with too few model calls. */
  readonly leftOut: number;
  readonly config: LabConfig;
  readonly prices: {
    readonly asOf: string;
    readonly tables: readonly (Omit<PriceTable, 'models'> & { readonly models: string })[];
  };
  /** `named` if the user named both sides. A side may be empty. */
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

/** The time to make requests, by policy. Only this part differs between runs. */
export type LabTimes = Readonly<Record<string, { readonly calls: number; readonly ms: number }>>;

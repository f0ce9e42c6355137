import { median, quantile } from './quantile.js';

/** The times of one contender of a case, call by call. */
export interface Sample {
  readonly name: string;
  /** Milliseconds of each measured call, in order. */
  readonly ms: readonly number[];
  /** Bytes of the last answer on the wire. */
  readonly answerBytes?: number;
}

/** A case that times several contenders. */
export interface TimedCase {
  readonly kind: 'timed';
  readonly title: string;
  readonly remark?: string;
  readonly samples: readonly Sample[];
  /** Names of the contenders to whose times the others are compared. */
  readonly yardsticks: readonly string[];
}

/** A case that yields single figures. */
export interface CountedCase {
  readonly kind: 'counted';
  readonly title: string;
  readonly remark?: string;
  readonly rows: readonly { readonly name: string; readonly value: number; readonly unit: string }[];
}

/** A goal of the project for a figure. A missed goal does not fail the run. */
export interface Goal {
  readonly what: string;
  readonly measured: number;
  readonly bar: number;
  readonly unit: string;
}

/** The results of a case. */
export interface CaseResult {
  readonly cases: readonly (TimedCase | CountedCase)[];
  readonly goals: readonly Goal[];
}

/** Returns the median of one contender of a case; NaN if it is missing. */
export function medianOf(samples: readonly Sample[], name: string): number {
  return median(samples.find((sample) => sample.name === name)?.ms ?? []);
}

/** Summarizes a sample in a few figures. */
export function summary({ ms }: Sample): {
  readonly n: number;
  readonly p50: number;
  readonly p95: number;
  readonly least: number;
} {
  return { n: ms.length, p50: median(ms), p95: quantile(ms, 0.95), least: Math.min(...ms) };
}

import { median, quantile } from './quantile.js';

/** What one contender of a case took, call by call. */
export interface Sample {
  readonly name: string;
  /** Milliseconds of each measured call, in the order in which they were made. */
  readonly ms: readonly number[];
  /** Bytes of the last answer on the wire. */
  readonly answerBytes?: number;
}

/** A case whose contenders were timed side by side. */
export interface TimedCase {
  readonly kind: 'timed';
  readonly title: string;
  readonly remark?: string;
  readonly samples: readonly Sample[];
  /** Names of the contenders that the others are given as multiples of. */
  readonly yardsticks: readonly string[];
}

/** A case that yields single figures. */
export interface CountedCase {
  readonly kind: 'counted';
  readonly title: string;
  readonly remark?: string;
  readonly rows: readonly { readonly name: string; readonly value: number; readonly unit: string }[];
}

/** What the project wants of a figure. Nothing fails when it is missed. */
export interface Goal {
  readonly what: string;
  readonly measured: number;
  readonly bar: number;
  readonly unit: string;
}

/** What a case found. */
export interface CaseResult {
  readonly cases: readonly (TimedCase | CountedCase)[];
  readonly goals: readonly Goal[];
}

/** The median of one contender of a case; NaN when it is not there. */
export function medianOf(samples: readonly Sample[], name: string): number {
  return median(samples.find((sample) => sample.name === name)?.ms ?? []);
}

/** A sample in a few figures. */
export function summary({ ms }: Sample): { readonly n: number; readonly p50: number; readonly p95: number; readonly least: number } {
  return { n: ms.length, p50: median(ms), p95: quantile(ms, 0.95), least: Math.min(...ms) };
}

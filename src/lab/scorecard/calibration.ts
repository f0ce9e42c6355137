import { CHARS_PER_TOKEN, tokensOf } from '../../values/token-estimate.js';
import { ownCompaction } from '../policies/own-compaction.js';
import { charsOf, type PolicyRequest } from '../policies/policy.js';
import type { Timeline } from '../timeline/timeline.js';

/** Compares the estimated tokens of the sent requests with the provider's counts. */
export interface Calibration {
  /** Calls that the provider counted. */
  readonly calls: number;
  /**
   * Tokens that the provider counts beyond the estimate of a small request: system prompt and
   * tools, which most recordings lack.
   */
  readonly fixed: number;
  /** Characters per token in the text added from call to call. */
  readonly charsPerToken: number;
  /** Relative error of the estimate with the fixed part over all calls; 0.05 is 5 % too much. */
  readonly difference: number;
  /**
   * Share of the prompt tokens read from the provider's cache; undefined if it was not reported.
   */
  readonly cached: number | undefined;
}

interface Counted {
  readonly chars: number;
  readonly tokens: number;
}

/** Fits a straight line to the points: `tokens = fixed + chars * slope`. */
function fitted(points: readonly Counted[]): { readonly fixed: number; readonly slope: number } {
  const n = points.length;
  const mean = (of: (one: Counted) => number): number => points.reduce((sum, one) => sum + of(one), 0) / n;
  const [x, y] = [mean(({ chars }) => chars), mean(({ tokens }) => tokens)];
  const spread = points.reduce((sum, { chars }) => sum + (chars - x) ** 2, 0);
  const slope =
    spread === 0
      ? 1 / CHARS_PER_TOKEN
      : points.reduce((sum, { chars, tokens }) => sum + (chars - x) * (tokens - y), 0) / spread;
  return { fixed: y - slope * x, slope };
}

/**
 * Compares the estimate with the recorded usage, call by call; undefined if fewer than three calls
 * were counted.
 */
export function calibrate(timeline: Timeline): Calibration | undefined {
  const requests = [...(ownCompaction.requests(timeline) as Iterable<PolicyRequest>)];
  const points = timeline.calls.flatMap(({ index, recorded }): readonly Counted[] =>
    recorded === undefined ? [] : [{ chars: charsOf(requests[index]?.parts ?? []), tokens: recorded.prompt }],
  );
  if (points.length < 3) return undefined;
  const { fixed, slope } = fitted(points);
  const counted = points.reduce((sum, { tokens }) => sum + tokens, 0);
  const estimated = points.reduce((sum, { chars }) => sum + tokensOf(chars) + fixed, 0);
  const told = timeline.calls.flatMap(({ recorded }) =>
    recorded?.cacheRead === undefined ? [] : [{ ...recorded, cacheRead: recorded.cacheRead }],
  );
  const prompt = told.reduce((sum, one) => sum + one.prompt, 0);
  return {
    calls: points.length,
    fixed,
    charsPerToken: slope > 0 ? 1 / slope : Number.NaN,
    difference: estimated / counted - 1,
    cached: prompt === 0 ? undefined : told.reduce((sum, { cacheRead }) => sum + cacheRead, 0) / prompt,
  };
}

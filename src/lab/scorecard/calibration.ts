import { CHARS_PER_TOKEN } from '../../values/token-estimate.js';
import { asSent } from '../policies/as-sent.js';
import { charsOf, type PolicyRequest } from '../policies/policy.js';
import { isCold, tableOf } from '../prices/price-table.js';
import type { ModelCall, Timeline } from '../timeline/timeline.js';
import { sharedChars } from './shared-chars.js';

/** The reasons why a predicted cache read can differ from the counted one. */
export const DISAGREEMENTS = [
  'the first call found a beginning that another session had written',
  'the cache lived longer than its table says',
  'the cache was lost although the beginning stayed the same',
  'a compaction or a rewind came before it',
  'another model answered',
  'the estimate of a size is off by more than the tolerance',
] as const;
export type Disagreement = (typeof DISAGREEMENTS)[number];

/** A comparison of our predictions for the recorded requests with the provider's counts. */
export interface Calibration {
  /** Number of calls that the provider counted. */
  readonly calls: number;
  /** Tokens that the provider counts in addition to the recorded texts: system prompt and tools. */
  readonly fixed: number;
  /** Characters per token of the recorded text. */
  readonly charsPerToken: number;
  /** Relative error of the estimated prompts, including the fixed part, over all calls. */
  readonly difference: number;
  /**
   * Number of calls whose cache reads the provider reported, and number of these that agree with
   * the prediction.
   */
  readonly reads: { readonly counted: number; readonly agree: number };
  /** The same two numbers for cache writes. */
  readonly writes: { readonly counted: number; readonly agree: number };
  /**
   * The price of all prompts with the predicted cache reads, divided by their price with the
   * counted cache reads.
   */
  readonly price: number | undefined;
  readonly causes: Readonly<Partial<Record<Disagreement, number>>>;
}

interface Counted {
  readonly chars: number;
  readonly tokens: number;
}

/**
 * A prediction agrees if it is off by at most 5 % of the prompt, or by at most this many tokens.
 */
const TOLERANCE = { share: 0.05, tokens: 1_024 };

/** Fits a straight line to the points: `tokens = fixed + chars * slope`. */
function fitted(points: readonly Counted[]): { readonly fixed: number; readonly slope: number } {
  const n = points.length;
  const mean = (of: (one: Counted) => number): number => points.reduce((sum, one) => sum + of(one), 0) / n;
  const [x, y] = [mean(({ chars }) => chars), mean(({ tokens }) => tokens)];
  const spread = points.reduce((sum, { chars }) => sum + (chars - x) ** 2, 0);
  const covered = points.reduce((sum, { chars, tokens }) => sum + (chars - x) * (tokens - y), 0);
  const slope = spread === 0 || covered <= 0 ? 1 / CHARS_PER_TOKEN : covered / spread;
  return { fixed: Math.max(0, y - slope * x), slope };
}

interface Predicted {
  readonly call: ModelCall;
  readonly before: ModelCall | undefined;
  readonly read: number;
  readonly isCold: boolean;
  readonly isWhole: boolean;
}

function causeOf({ call, before, read, isCold: cold, isWhole }: Predicted, counted: number): Disagreement {
  const [first, longer, lost, compacted, model, size] = DISAGREEMENTS;
  if (before === undefined) return first;
  if (call.model !== before.model) return model;
  if (!isWhole) return compacted;
  if (cold) return longer;
  return counted < read / 2 ? lost : size;
}

/**
 * Predicts what each recorded call read from the cache and wrote to it, and compares this with the
 * provider's counts. Undefined if fewer than three calls were counted.
 */
export function calibrate(timeline: Timeline): Calibration | undefined {
  const requests = [...(asSent.requests(timeline) as Iterable<PolicyRequest>)];
  const points = timeline.calls.flatMap(({ index, recorded }): readonly Counted[] =>
    recorded === undefined ? [] : [{ chars: charsOf(requests[index]?.parts ?? []), tokens: recorded.prompt }],
  );
  if (points.length < 3) return undefined;
  const { fixed, slope } = fitted(points);
  const table = tableOf(timeline.model);
  const causes: Partial<Record<Disagreement, number>> = {};
  const reads = { counted: 0, agree: 0 };
  const writes = { counted: 0, agree: 0 };
  const price = { predicted: 0, counted: 0 };
  for (const call of timeline.calls) {
    const { recorded, index } = call;
    if (recorded?.cacheRead === undefined) continue;
    const before = timeline.calls[index - 1];
    const [old, now] = [requests[index - 1]?.parts ?? [], requests[index]?.parts ?? []];
    const [same, size] = [sharedChars(old, now), charsOf(old)];
    const cold = isCold(table, call, before);
    const share = (fixed + same * slope) / Math.max(1, fixed + size * slope);
    const read = cold ? 0 : Math.min(recorded.prompt, (before?.recorded?.prompt ?? fixed + size * slope) * share);
    const tolerance = Math.max(TOLERANCE.tokens, TOLERANCE.share * recorded.prompt);
    reads.counted += 1;
    if (Math.abs(read - recorded.cacheRead) <= tolerance) reads.agree += 1;
    else {
      const cause = causeOf({ call, before, read, isCold: cold, isWhole: same >= size }, recorded.cacheRead);
      causes[cause] = (causes[cause] ?? 0) + 1;
    }
    if (recorded.cacheWrite !== undefined && recorded.cacheWrite > 0) {
      writes.counted += 1;
      if (Math.abs(recorded.prompt - read - recorded.cacheWrite) <= tolerance) writes.agree += 1;
    }
    price.predicted += table.read * read + table.write * (recorded.prompt - read);
    price.counted += table.read * recorded.cacheRead + table.write * (recorded.prompt - recorded.cacheRead);
  }
  const tokens = points.reduce((sum, one) => sum + one.tokens, 0);
  const estimated = points.reduce((sum, { chars }) => sum + chars / CHARS_PER_TOKEN + fixed, 0);
  return {
    calls: points.length,
    fixed,
    charsPerToken: 1 / slope,
    difference: estimated / tokens - 1,
    reads,
    writes,
    price: price.counted === 0 ? undefined : price.predicted / price.counted,
    causes,
  };
}

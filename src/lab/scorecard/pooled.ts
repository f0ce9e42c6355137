import { PRICE_TABLES } from '../prices/price-table.js';
import type { PolicyScore } from './score.js';

/** A figure over several sessions with its 95 % interval over resampled sessions. */
export interface Interval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** A session under one policy and under `raw`. */
export interface ScoredPair {
  readonly session: string;
  readonly raw: PolicyScore;
  readonly own: PolicyScore;
  /**
   * The cost of system prompt and tools under the first table, equal for every policy; 0 if the
   * recording lacks their size.
   */
  readonly fixedCost: number;
}

/**
 * The score of a policy over several sessions together. Costs and tokens are relative to `raw` on
 * the same sessions.
 */
export interface PooledScore {
  readonly sessions: number;
  readonly calls: number;
  /** Costs by the name of the price table. */
  readonly cost: Readonly<Record<string, Interval>>;
  readonly costWithRepeats: number;
  /** The cost including the system prompt and tools of every call, which no policy changes. */
  readonly costWithFixed: number;
  /** The highest relative cost of a session, under the first table. */
  readonly worstSession: number;
  /**
   * The unweighted mean of the sessions' relative costs, and the pooled cost without the session
   * that is most expensive under `raw`.
   */
  readonly meanOfSessions: number;
  readonly withoutHeaviest: number;
  readonly tokens: number;
  readonly meanTokens: number;
  readonly peakTokens: number;
  readonly same: number;
  readonly hits: number;
  readonly linesKept: Interval;
  readonly callsKept: Interval;
  readonly reasoningKept: number;
  readonly pressed: number;
  /** Shares of the needed lines. */
  readonly activate: number;
  readonly readAgain: number;
  readonly lost: number;
  readonly repeats: number;
  readonly stale: number;
  readonly rewrites: number;
  readonly storedPerCall: number | undefined;
  /** The share of calls made before anything was missing in their session. */
  readonly exact: number;
  readonly overWindow: number;
}

const RESAMPLINGS = 2_000;
const OUTSIDE = 0.025;

/** Returns a generator of numbers from 0 to 1 that is equal in every run (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The ratio of two sums over sessions. */
interface Ratio {
  readonly of: (pair: ScoredPair) => number;
  readonly to: (pair: ScoredPair) => number;
}

const sum = (pairs: readonly ScoredPair[], of: (pair: ScoredPair) => number): number =>
  pairs.reduce((all, pair) => all + of(pair), 0);
/** If nothing was needed, everything needed was kept. */
const ratioOf = (pairs: readonly ScoredPair[], { of, to }: Ratio): number => {
  const whole = sum(pairs, to);
  return whole === 0 ? 1 : sum(pairs, of) / whole;
};

/**
 * Returns the ratio with its interval by bootstrap: as many sessions are drawn, with repetition, as
 * there are.
 */
function interval(pairs: readonly ScoredPair[], ratio: Ratio, isAsked: boolean): Interval {
  if (!isAsked) return { value: ratioOf(pairs, ratio), low: Number.NaN, high: Number.NaN };
  const random = seeded(pairs.length);
  const values = Array.from({ length: RESAMPLINGS }, () =>
    ratioOf(
      pairs.map((pair) => pairs[Math.floor(random() * pairs.length)] ?? pair),
      ratio,
    ),
  ).sort((a, b) => a - b);
  const at = (share: number): number => values[Math.min(values.length - 1, Math.floor(share * values.length))] ?? 0;
  return { value: ratioOf(pairs, ratio), low: at(OUTSIDE), high: at(1 - OUTSIDE) };
}

/**
 * Pools the scores of a policy; undefined if it has none. Without `intervals` their bounds are NaN.
 */
export function pooledScore(pairs: readonly ScoredPair[], { intervals = true } = {}): PooledScore | undefined {
  if (pairs.length === 0) return undefined;
  const [compared] = PRICE_TABLES;
  const calls = sum(pairs, ({ own }) => own.calls);
  const costIn = (name: string): Ratio => ({
    of: ({ own }) => own.cost[name] ?? 0,
    to: ({ raw }) => raw.cost[name] ?? 0,
  });
  const lines = (of: (pair: ScoredPair) => number): number => ratioOf(pairs, { of, to: ({ own }) => own.needed.lines });
  const missed = (of: (pair: ScoredPair) => number): number =>
    sum(pairs, ({ own }) => own.needed.lines) === 0 ? 0 : lines(of);
  const costs = pairs.map((pair) => ratioOf([pair], costIn(compared.name)));
  const heaviest = Math.max(...pairs.map(costIn(compared.name).to));
  const lighter = pairs.filter((pair) => pairs.length === 1 || costIn(compared.name).to(pair) < heaviest);
  const stored = pairs.flatMap(({ own }) => own.stored ?? []);
  return {
    sessions: pairs.length,
    calls,
    cost: Object.fromEntries(PRICE_TABLES.map(({ name }) => [name, interval(pairs, costIn(name), intervals)])),
    costWithRepeats: ratioOf(pairs, { of: ({ own }) => own.costWithRepeats, to: ({ raw }) => raw.costWithRepeats }),
    costWithFixed: ratioOf(pairs, {
      of: ({ own, fixedCost }) => (own.cost[compared.name] ?? 0) + fixedCost,
      to: (pair) => (pair.raw.cost[compared.name] ?? 0) + pair.fixedCost,
    }),
    worstSession: Math.max(...costs),
    meanOfSessions: costs.reduce((all, one) => all + one, 0) / costs.length,
    withoutHeaviest: ratioOf(lighter, costIn(compared.name)),
    tokens: ratioOf(pairs, { of: ({ own }) => own.tokens.total, to: ({ raw }) => raw.tokens.total }),
    meanTokens: sum(pairs, ({ own }) => own.tokens.total) / calls,
    peakTokens: Math.max(...pairs.map(({ own }) => own.tokens.peak)),
    same: ratioOf(pairs, { of: ({ own }) => own.same, to: ({ own }) => own.tokens.total }),
    hits: ratioOf(pairs, { of: ({ own }) => own.hits, to: ({ own }) => own.tokens.total }),
    linesKept: interval(pairs, { of: ({ own }) => own.needed.kept, to: ({ own }) => own.needed.lines }, intervals),
    callsKept: interval(pairs, { of: ({ own }) => own.needed.callsKept, to: ({ own }) => own.needed.calls }, intervals),
    reasoningKept: sum(pairs, ({ own }) => own.reasoning.kept) / calls,
    pressed: sum(pairs, ({ own }) => own.reasoning.pressed),
    activate: missed(({ own }) => own.needed.activate),
    readAgain: missed(({ own }) => own.needed.readAgain),
    lost: missed(({ own }) => own.needed.lost),
    repeats: sum(pairs, ({ own }) => own.repeats),
    stale: sum(pairs, ({ own }) => own.stale * own.calls) / calls,
    rewrites: sum(pairs, ({ own }) => own.rewrites),
    storedPerCall: stored.length === 0 ? undefined : stored.reduce((all, one) => all + one, 0) / calls,
    exact: sum(pairs, ({ own }) => own.exact) / calls,
    overWindow: sum(pairs, ({ own }) => own.overWindow),
  };
}

import { PRICE_TABLES } from '../prices/price-table.js';
import { COST_PARTS, type CostParts, type PolicyScore } from './score.js';

/** A figure over several sessions, with its 95 % interval from resampling the sessions. */
export interface Interval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** A session's scores under a policy and under the two baselines. */
export interface ScoredSession {
  readonly session: string;
  readonly own: PolicyScore;
  /** The baseline that keeps everything. */
  readonly raw: PolicyScore;
  /** The baseline of the requests that the recorded program sent. */
  readonly sent: PolicyScore;
}

/** A policy's score over several sessions. */
export interface PooledScore {
  readonly sessions: number;
  readonly calls: number;
  /**
   * Cost relative to the baseline `raw`, over the calls whose `raw` request fits the window.
   * Undefined if there are no such calls.
   */
  readonly vsRaw: Interval | undefined;
  /** Cost relative to the requests that the recorded programs sent, over all calls. */
  readonly vsSent: Interval;
  /** The highest cost of any session, relative to the cost of the recorded program's requests. */
  readonly worst: number;
  /** Cost relative to the recorded requests, over the first 60 calls of each session. */
  readonly first60: number;
  /**
   * Cost relative to the recorded requests without the heaviest session. Present if that session
   * has over a fifth of the weight.
   */
  readonly withoutHeaviest: { readonly session: string; readonly share: number; readonly vsSent: number } | undefined;
  /** The share of each cost part in the policy's cost. */
  readonly shares: Readonly<CostParts>;
  /** Cost relative to the recorded requests, by name of price table. */
  readonly byTable: Readonly<Record<string, number>>;
  readonly linesKept: Interval;
  readonly callsKept: Interval;
  readonly inputsKept: number;
  readonly reasoningKept: number;
  readonly pressed: number;
  readonly hits: number;
  readonly same: number;
  /**
   * Shares of the needed lines that a request lacked: the model can activate them, read the file
   * again, or has lost them.
   */
  readonly activate: number;
  readonly readAgain: number;
  readonly lost: number;
  readonly repeats: number;
  readonly meanTokens: number;
  readonly peakTokens: number;
  readonly stale: number;
  readonly rewrites: number;
  readonly storedPerCall: number | undefined;
  /** The share of calls before their session's first missing line. */
  readonly exact: number;
  readonly overWindow: number;
}

const RESAMPLINGS = 2_000;
const OUTSIDE = 0.025;
/** Share of the weight above which a single session nearly decides a figure. */
const HEAVY_SHARE = 0.2;
const FIRST_CALLS = 60;

/**
 * Returns a generator of pseudorandom numbers from 0 to 1 that gives the same numbers in every run
 * (mulberry32).
 */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A ratio of two sums, with one pair of summands for each session. */
type Ratio = readonly (readonly [of: number, to: number])[];

const total = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0);
/**
 * Returns the ratio of the sums. It is 1 if the second sum is 0: nothing was needed, so nothing is
 * lost.
 */
function ratioOf(pairs: Ratio): number {
  const whole = total(pairs.map(([, to]) => to));
  return whole === 0 ? 1 : total(pairs.map(([of]) => of)) / whole;
}

/**
 * Returns a ratio with its bootstrap interval. Each resampling draws, with repetition, as many
 * sessions as there are.
 */
function interval(pairs: Ratio, isWanted: boolean): Interval {
  const value = ratioOf(pairs);
  if (!isWanted) return { value, low: Number.NaN, high: Number.NaN };
  const random = seeded(pairs.length);
  const values = Float64Array.from({ length: RESAMPLINGS }, () => {
    let [of, to] = [0, 0];
    for (let i = 0; i < pairs.length; i += 1) {
      const pair = pairs[Math.floor(random() * pairs.length)] ?? [0, 0];
      of += pair[0];
      to += pair[1];
    }
    return to === 0 ? 1 : of / to;
  }).sort();
  const at = (share: number): number => values[Math.min(values.length - 1, Math.floor(share * values.length))] ?? 0;
  return { value, low: at(OUTSIDE), high: at(1 - OUTSIDE) };
}

const costTo = ({ series }: PolicyScore, end: number): number => total(series.cost.slice(0, end));

/**
 * Returns a session's cost and its cost under the baseline `raw`, over the calls whose `raw`
 * request fits the window.
 */
const rawPair = ({ own, raw }: ScoredSession): readonly [number, number] => [
  costTo(own, raw.fits),
  costTo(raw, raw.fits),
];

const [COMPARED] = PRICE_TABLES;
const costOf = (score: PolicyScore, table = COMPARED.name): number => score.cost[table] ?? 0;
const sentPair = ({ own, sent }: ScoredSession): readonly [number, number] => [costOf(own), costOf(sent)];

function heaviest(sessions: readonly ScoredSession[]): PooledScore['withoutHeaviest'] {
  const all = total(sessions.map(({ sent }) => costOf(sent)));
  const [first] = [...sessions].sort((a, b) => costOf(b.sent) - costOf(a.sent));
  if (first === undefined || sessions.length === 1 || costOf(first.sent) <= HEAVY_SHARE * all) return undefined;
  const others = sessions.filter((one) => one !== first);
  return { session: first.session, share: costOf(first.sent) / all, vsSent: ratioOf(others.map(sentPair)) };
}

/**
 * Pools a policy's sessions by summing costs and counts, so longer sessions weigh more. Computes no
 * intervals unless `intervals` is set. Undefined if there are no sessions.
 */
export function pooledScore(
  sessions: readonly ScoredSession[],
  { intervals = true }: { readonly intervals?: boolean } = {},
): PooledScore | undefined {
  if (sessions.length === 0) return undefined;
  const own = sessions.map((one) => one.own);
  const sum = (of: (score: PolicyScore) => number): number => total(own.map(of));
  const share = (of: (score: PolicyScore) => number, to: (score: PolicyScore) => number): Ratio =>
    own.map((score) => [of(score), to(score)] as const);
  const lines = sum(({ needed }) => needed.lines);
  const ofLines = (of: (score: PolicyScore) => number): number => (lines === 0 ? 0 : sum(of) / lines);
  const cost = sum((score) => costOf(score));
  const calls = sum((one) => one.calls);
  const tokens = sum((one) => one.tokens.total);
  const stored = own.flatMap((one) => one.stored ?? []);
  const fitting = sessions.filter(({ raw }) => raw.fits > 0);
  const early = sessions.map((one) => {
    const end = Math.min(FIRST_CALLS, one.sent.calls);
    return costTo(one.own, end) / costTo(one.sent, end);
  });
  return {
    sessions: sessions.length,
    calls,
    vsRaw: fitting.length === 0 ? undefined : interval(fitting.map(rawPair), intervals),
    vsSent: interval(sessions.map(sentPair), intervals),
    worst: Math.max(...sessions.map((one) => ratioOf([sentPair(one)]))),
    first60: Math.max(...early),
    withoutHeaviest: heaviest(sessions),
    shares: Object.fromEntries(
      COST_PARTS.map((part) => [part, sum(({ parts }) => parts[part]) / cost]),
    ) as unknown as CostParts,
    byTable: Object.fromEntries(
      PRICE_TABLES.map(({ name }) => [
        name,
        ratioOf(sessions.map((one) => [costOf(one.own, name), costOf(one.sent, name)])),
      ]),
    ),
    linesKept: interval(
      share(
        ({ needed }) => needed.kept,
        ({ needed }) => needed.lines,
      ),
      intervals,
    ),
    callsKept: interval(
      share(
        ({ needed }) => needed.callsKept,
        ({ needed }) => needed.calls,
      ),
      intervals,
    ),
    inputsKept: ratioOf(
      share(
        ({ needed }) => needed.inputsKept,
        ({ needed }) => needed.calls,
      ),
    ),
    reasoningKept: sum(({ reasoning }) => reasoning.kept) / calls,
    pressed: sum(({ reasoning }) => reasoning.pressed),
    hits: sum((one) => one.hits) / tokens,
    same: sum((one) => one.same) / tokens,
    activate: ofLines(({ needed }) => needed.activate),
    readAgain: ofLines(({ needed }) => needed.readAgain),
    lost: ofLines(({ needed }) => needed.lost),
    repeats: sum((one) => one.repeats),
    meanTokens: tokens / calls,
    peakTokens: Math.max(...own.map((one) => one.tokens.peak)),
    stale: sum((one) => one.stale * one.calls) / calls,
    rewrites: sum((one) => one.rewrites),
    storedPerCall: stored.length === 0 ? undefined : total(stored) / calls,
    exact: sum((one) => one.exact) / calls,
    overWindow: sum((one) => one.calls - one.fits),
  };
}

/** A policy's scored sessions, by name. */
export interface Candidate {
  readonly name: string;
  readonly sessions: readonly ScoredSession[];
}

/**
 * Returns whether a policy keeps at least as many calls as another at no higher cost, on the
 * sessions that both scored. Undefined if they have no session in common.
 */
export function isNoWorse(one: Candidate, other: Candidate): boolean | undefined {
  const names = new Set(other.sessions.map(({ session }) => session));
  const common = one.sessions.filter(({ session }) => names.has(session));
  const shared = new Set(common.map(({ session }) => session));
  const a = pooledScore(common, { intervals: false });
  const b = pooledScore(
    other.sessions.filter(({ session }) => shared.has(session)),
    { intervals: false },
  );
  if (a === undefined || b === undefined) return undefined;
  return a.vsSent.value <= b.vsSent.value && a.callsKept.value >= b.callsKept.value;
}

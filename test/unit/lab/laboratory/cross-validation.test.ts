import { describe, expect, test } from '@jest/globals';
import { PRICE_TABLES } from '../../../../src/lab/prices/price-table.js';
import { type Candidate, crossValidate } from '../../../../src/lab/scorecard/cross-validation.js';
import type { ScoredPair } from '../../../../src/lab/scorecard/pooled.js';
import type { PolicyScore } from '../../../../src/lab/scorecard/score.js';

/** The score of a session of a hundred calls that each need a line. */
function scoreOf(cost: number, kept: number): PolicyScore {
  return {
    calls: 100,
    tokens: { total: 1_000, mean: 10, peak: 20 },
    same: 900,
    hits: 900,
    cost: Object.fromEntries(PRICE_TABLES.map(({ name }) => [name, cost])),
    costWithRepeats: cost,
    needed: { lines: 100, kept, activate: 100 - kept, readAgain: 0, lost: 0, calls: 100, callsKept: kept },
    reasoning: { kept: 100, pressed: 0 },
    repeats: 0,
    stale: 0,
    rewrites: 0,
    stored: undefined,
    exact: 100,
    overWindow: 0,
    series: { tokens: [], cost: [], same: [], missed: [] },
  };
}

const raw = scoreOf(100, 100);

/** A policy with the cost and the kept calls of each session. */
const candidate = (name: string, sessions: Readonly<Record<string, readonly [number, number]>>): Candidate => ({
  name,
  pairs: Object.entries(sessions).map(
    ([session, [cost, kept]]): ScoredPair => ({ session, raw, own: scoreOf(cost, kept), fixedCost: 0 }),
  ),
});

describe('a choice checked on held-out sessions', () => {
  test('takes for each session the cheapest policy that keeps enough of the others', () => {
    // `short` keeps too little of c only. So it is chosen for c, where it is insufficient.
    const short = candidate('short', { a: [40, 99], b: [40, 99], c: [40, 60] });
    const long = candidate('long', { a: [60, 100], b: [60, 100], c: [60, 98] });
    const found = crossValidate([long, short]);
    expect(found?.chosen).toEqual([
      { session: 'a', policy: 'long' },
      { session: 'b', policy: 'long' },
      { session: 'c', policy: 'short' },
    ]);
    expect(found?.pooled.cost[PRICE_TABLES[0].name]?.value).toBeCloseTo(160 / 300);
    expect(found?.pooled.callsKept.value).toBeCloseTo(260 / 300);
  });

  test('takes the policy that keeps most if none keeps enough', () => {
    const found = crossValidate([
      candidate('less', { a: [10, 50], b: [10, 50] }),
      candidate('more', { a: [90, 70], b: [90, 70] }),
    ]);
    expect(found?.chosen.map(({ policy }) => policy)).toEqual(['more', 'more']);
  });

  test('requires two policies and two sessions common to all', () => {
    const one = candidate('one', { a: [10, 99], b: [10, 99] });
    expect(crossValidate([])).toBeUndefined();
    expect(crossValidate([one])).toBeUndefined();
    expect(crossValidate([one, candidate('two', { a: [10, 99] })])).toBeUndefined();
    expect(crossValidate([one, candidate('two', { a: [10, 99], b: [20, 99], c: [1, 99] })])?.chosen).toHaveLength(2);
  });
});

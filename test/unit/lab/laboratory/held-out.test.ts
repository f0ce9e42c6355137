import { describe, expect, test } from '@jest/globals';
import { PRICE_TABLES } from '../../../../src/lab/prices/price-table.js';
import {
  chooseOn,
  leaveProjectsOut,
  type ScoredPolicy,
  splitByProject,
} from '../../../../src/lab/scorecard/held-out.js';
import { isNoWorse, type ScoredSession } from '../../../../src/lab/scorecard/pooled.js';
import type { PolicyScore } from '../../../../src/lab/scorecard/score.js';

/** The score of a session of a hundred calls that each need a line. */
function scoreOf(cost: number, kept: number): PolicyScore {
  return {
    calls: 100,
    tokens: { total: 1_000, peak: 20 },
    same: 900,
    hits: 900,
    cost: Object.fromEntries(PRICE_TABLES.map(({ name }) => [name, cost])),
    parts: { fixed: 0, guide: 0, requests: cost, misses: 0, summaries: 0, output: 0 },
    needed: {
      lines: 100,
      kept,
      activate: 100 - kept,
      readAgain: 0,
      lost: 0,
      calls: 100,
      callsKept: kept,
      inputsKept: kept,
    },
    reasoning: { kept: 100, pressed: 0 },
    repeats: 0,
    stale: 0,
    rewrites: 0,
    stored: undefined,
    exact: 100,
    fits: 100,
    series: { tokens: [], cost: [cost], same: [], needed: [], missed: [], missedInputs: [] },
  };
}

const raw = scoreOf(100, 100);

/** A setting with the cost and the kept calls of each session. */
const setting = (name: string, sessions: Readonly<Record<string, readonly [number, number]>>): ScoredPolicy => ({
  name,
  family: 'one family',
  sessions: Object.entries(sessions).map(
    ([session, [cost, kept]]): ScoredSession => ({ session, raw, sent: raw, own: scoreOf(cost, kept) }),
  ),
});

const all = new Set(['a', 'b', 'c']);
const projects = [...all].map((session) => ({ session, group: `project of ${session}`, calls: 100 }));

describe('a choice on held-out sessions', () => {
  test('takes for each project the cheapest setting that keeps enough on the other projects', () => {
    // `short` keeps too little only on c. It is chosen for c by the other projects, and fails
    // there.
    const short = setting('short', { a: [40, 99], b: [40, 99], c: [40, 60] });
    const long = setting('long', { a: [60, 100], b: [60, 100], c: [60, 98] });
    const found = leaveProjectsOut([long, short], projects);
    expect(found?.chosen).toEqual([
      { sessions: ['a'], policy: 'long' },
      { sessions: ['b'], policy: 'long' },
      { sessions: ['c'], policy: 'short' },
    ]);
    expect(found?.sessions.map(({ own }) => own.needed.kept)).toEqual([100, 100, 60]);
  });

  test('never looks at the sessions of the project itself', () => {
    const honest = setting('honest', { a: [60, 99], b: [60, 99], c: [60, 99] });
    const tempting = setting('tempting', { a: [1, 100], b: [60, 10], c: [60, 10] });
    expect(leaveProjectsOut([honest, tempting], projects)?.chosen[0]).toEqual({ sessions: ['a'], policy: 'honest' });
  });

  test('takes the setting that keeps most if none keeps enough', () => {
    const [less, more] = [setting('less', { a: [10, 50] }), setting('more', { a: [90, 70] })];
    expect(chooseOn([less, more], all)?.name).toBe('more');
    expect(chooseOn([less, more], new Set(['z']))).toBeUndefined();
  });

  test('requires two settings and two projects', () => {
    const one = setting('one', { a: [10, 99], b: [10, 99], c: [10, 99] });
    expect(leaveProjectsOut([one], projects)).toBeUndefined();
    expect(leaveProjectsOut([one, one], projects.slice(0, 1))).toBeUndefined();
  });
});

describe('the sides of a split', () => {
  test('have whole projects and about the same number of calls, in any order of the sessions', () => {
    const sessions = [
      { session: 'a1', group: 'a', calls: 60 },
      { session: 'b1', group: 'b', calls: 50 },
      { session: 'a2', group: 'a', calls: 40 },
      { session: 'c1', group: 'c', calls: 45 },
    ];
    for (const order of [sessions, sessions.toReversed()]) {
      const { train, test: held } = splitByProject(order);
      expect([[...held].sort(), [...train].sort()]).toEqual([
        ['a1', 'a2'],
        ['b1', 'c1'],
      ]);
    }
  });
});

describe('a comparison of two policies', () => {
  test('uses the sessions that both scored, and gives no result without such a session', () => {
    const ours = setting('ours', { a: [50, 90], b: [50, 90] });
    // The peer is better on the common session b. Its second session does not count.
    const peer = setting('peer', { b: [40, 95], c: [900, 10] });
    expect([isNoWorse(ours, peer), isNoWorse(peer, ours)]).toEqual([false, true]);
    expect(isNoWorse(ours, setting('elsewhere', { c: [1, 100] }))).toBeUndefined();
  });
});

import { describe, expect, test } from '@jest/globals';
import type { PolicyRequest } from '../../../../src/lab/policies/policy.js';
import { wholePart } from '../../../../src/lab/policies/policy.js';
import { raw } from '../../../../src/lab/policies/raw.js';
import { pooledScore } from '../../../../src/lab/scorecard/pooled.js';
import { type PolicyScore, Scorer } from '../../../../src/lab/scorecard/score.js';
import { neededLines } from '../../../../src/lab/timeline/needed-lines.js';
import type { Timeline } from '../../../../src/lab/timeline/timeline.js';
import { tokensOf } from '../../../../src/values/token-estimate.js';
import { RecordingLines } from '../../../support/replays.js';
import { timelineOf } from '../../../support/timelines.js';

const LINE = 'const total = price * count;';

function score(
  timeline: Timeline,
  requests: Iterable<PolicyRequest>,
  reach: 'activate' | 'none' = 'none',
): PolicyScore {
  const scorer = new Scorer(timeline, { reach, needed: neededLines(timeline), window: 200_000, asRecorded: false });
  for (const request of requests) scorer.take(request);
  return scorer.finish();
}

const rawOf = (timeline: Timeline): PolicyScore => score(timeline, raw.requests(timeline) as Iterable<PolicyRequest>);

/**
 * Three calls in two turns. The last one comes an hour later and needs a line of the first result.
 */
const lateEdit = (): Promise<Timeline> =>
  timelineOf(
    new RecordingLines()
      .user('look')
      .reads('r1', '/p/a.ts', `${LINE}\n`)
      .says('seen')
      .user('change it', Date.UTC(2026, 0, 5, 10, 30))
      .edits('e1', '/p/a.ts', `${LINE}\n`, LINE, 'const total = 0;'),
  );

/** The requests of `raw` without the results from a call on. */
function without(timeline: Timeline, from: number): readonly PolicyRequest[] {
  return timeline.calls.map(({ index, items, visible }) => ({
    parts: items
      .slice(0, visible)
      .filter(({ kind }) => index < from || kind !== 'result')
      .map(wholePart),
  }));
}

describe('the scorecard', () => {
  test('prices the shared beginning as read and the rest as written, and all as written after idle time', async () => {
    const timeline = await lateEdit();
    const sizes = timeline.calls.map(({ items, visible }) =>
      items.slice(0, visible).reduce((sum, { text }) => sum + text.length, 0),
    );
    const [a = 0, b = 0, c = 0] = sizes;
    const { cost, hits, same, tokens } = rawOf(timeline);
    expect(cost['Anthropic, 5 minutes']).toBeCloseTo(tokensOf(1.25 * a + 0.1 * a + 1.25 * (b - a) + 1.25 * c));
    // An hour and a half exceeds the other lifetime as well.
    expect(cost['Anthropic, 1 hour']).toBeCloseTo(tokensOf(2 * a + 0.1 * a + 2 * (b - a) + 2 * c));
    expect(cost['OpenAI, read 0.5']).toBeCloseTo(tokensOf(a + 0.5 * a + (b - a) + c));
    expect([hits, same]).toEqual([tokensOf(a), tokensOf(a + b)]);
    expect(tokens).toEqual({ total: tokensOf(a + b + c), mean: tokensOf(a + b + c) / 3, peak: tokensOf(c) });
  });

  test('counts the lines and calls that a request kept, and where the others are available', async () => {
    const timeline = await lateEdit();
    expect(rawOf(timeline).needed).toMatchObject({ lines: 1, kept: 1, calls: 1, callsKept: 1 });
    const gone = score(timeline, without(timeline, 2));
    // The file has not changed, so it could be read again.
    expect(gone.needed).toEqual({ lines: 1, kept: 0, activate: 0, readAgain: 1, lost: 0, calls: 1, callsKept: 0 });
    expect([gone.exact, gone.repeats, gone.series.missed]).toEqual([2, 1, [0, 0, 1]]);
    expect(gone.costWithRepeats).toBeGreaterThan(gone.cost['Anthropic, 5 minutes'] ?? 0);
    expect(score(timeline, without(timeline, 2), 'activate').needed).toMatchObject({
      activate: 1,
      readAgain: 0,
      lost: 0,
    });
  });

  test('finds lines in texts of the policy itself', async () => {
    const timeline = await lateEdit();
    const requests = without(timeline, 0).map(({ parts }) => ({ parts: [...parts, { text: `active:\n${LINE}` }] }));
    expect(score(timeline, requests).needed.kept).toBe(1);
  });

  test('counts the thinking of a turn as lost once a request does not begin with the previous one', async () => {
    const lines = new RecordingLines().user('go');
    for (let i = 1; i <= 3; i++)
      lines.calls(`c${i}`, 'Bash', { command: `run ${i}` }).answers(`c${i}`, `output number ${i}`);
    const timeline = await timelineOf(lines.says('done').user('more').says('yes'));
    expect(rawOf(timeline).reasoning).toEqual({ kept: 5, pressed: 0 });
    // The third call loses the first result. The rest of the turn loses its thinking; the next turn
    // begins anew.
    const { reasoning, rewrites } = score(timeline, without(timeline, 2));
    expect([reasoning.kept, rewrites]).toEqual([3, 1]);
  });

  test('counts results that show an outdated file', async () => {
    const text = `${LINE}\n`;
    const timeline = await timelineOf(
      new RecordingLines()
        .user('go')
        .reads('r1', '/p/a.ts', text)
        .edits('e1', '/p/a.ts', text, 'count', 'amount')
        .says('done'),
    );
    const shown = timeline.items.find(({ kind }) => kind === 'result')?.text.length ?? 0;
    expect(rawOf(timeline).stale).toBeCloseTo(tokensOf(shown) / 3);
  });

  test('refuses a policy that omits a call', async () => {
    const timeline = await lateEdit();
    expect(() => score(timeline, without(timeline, 2).slice(1))).toThrow('2 requests for 3 calls');
  });
});

describe('combined sessions', () => {
  test('are weighted by cost, with an interval that is the same in every run', async () => {
    const timeline = await lateEdit();
    const own = score(timeline, without(timeline, 2));
    const pairs = ['a', 'b', 'c'].map((session, i) => ({
      session,
      raw: rawOf(timeline),
      own: i === 0 ? rawOf(timeline) : own,
      fixedCost: 0,
    }));
    const pooled = pooledScore(pairs);
    expect(pooled).toEqual(pooledScore(pairs));
    expect(pooled?.callsKept.value).toBeCloseTo(1 / 3);
    expect([pooled?.callsKept.low, pooled?.callsKept.high]).toEqual([0, 1]);
    const cost = pooled?.cost['Anthropic, 5 minutes'];
    expect(cost?.value).toBeLessThan(1);
    expect(cost?.low).toBeLessThanOrEqual(cost?.value ?? 0);
    expect(pooled?.worstSession).toBe(1);
    const each = pairs.map(
      (pair) => (pair.own.cost['Anthropic, 5 minutes'] ?? 0) / (pair.raw.cost['Anthropic, 5 minutes'] ?? 1),
    );
    expect(pooled?.meanOfSessions).toBeCloseTo(each.reduce((sum, one) => sum + one, 0) / 3);
    expect(pooledScore([])).toBeUndefined();
  });
});

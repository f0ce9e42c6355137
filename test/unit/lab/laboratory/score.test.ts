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

interface Parameters {
  readonly reach: 'activate' | 'none';
  readonly guide: number;
  readonly fixed: number;
  readonly window: number;
}

function score(
  timeline: Timeline,
  requests: Iterable<PolicyRequest>,
  { reach = 'none', guide = 0, fixed = 0, window = 200_000 }: Partial<Parameters> = {},
): PolicyScore {
  const scorer = new Scorer(timeline, { policy: { reach, guide }, needed: neededLines(timeline), window, fixed });
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

/** The requests of `raw`, without the results that follow a call. */
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
    const { cost, parts, hits, same, tokens } = rawOf(timeline);
    expect(parts.requests).toBeCloseTo(tokensOf(1.25 * a + 0.1 * a + 1.25 * (b - a) + 1.25 * c));
    const said = timeline.calls.flatMap(({ outputs }) => outputs).reduce((sum, { text }) => sum + text.length, 0);
    expect(parts).toMatchObject({ fixed: 0, guide: 0, misses: 0, summaries: 0 });
    expect(parts.output).toBeCloseTo(5 * tokensOf(said));
    expect(cost['Anthropic, 5 minutes']).toBeCloseTo(parts.requests + parts.output);
    // The pause of an hour and a half also exceeds the cache lifetime of one hour.
    expect(cost['Anthropic, 1 hour']).toBeCloseTo(tokensOf(2 * a + 0.1 * a + 2 * (b - a) + 2 * c + 5 * said));
    expect(cost['OpenAI, read 0.5']).toBeCloseTo(tokensOf(a + 0.5 * a + (b - a) + c + 4 * said));
    expect([hits, same]).toEqual([tokensOf(a), tokensOf(a + b)]);
    expect(tokens).toEqual({ total: tokensOf(a + b + c), peak: tokensOf(c) });
  });

  test('charges system prompt, tools and guide in front of each request, written where the cache is cold', async () => {
    const timeline = await lateEdit();
    const { parts, tokens } = score(timeline, raw.requests(timeline) as Iterable<PolicyRequest>, {
      fixed: 1_000,
      guide: 360,
    });
    expect(parts.fixed).toBeCloseTo(1_000 * (1.25 + 0.1 + 1.25));
    expect(parts.guide).toBeCloseTo(100 * (1.25 + 0.1 + 1.25));
    expect(tokens.peak - rawOf(timeline).tokens.peak).toBeCloseTo(1_100);
  });

  test('counts the leading calls whose requests fit the window', async () => {
    const timeline = await lateEdit();
    const requests = raw.requests(timeline) as Iterable<PolicyRequest>;
    const peak = rawOf(timeline).tokens.peak;
    expect(score(timeline, requests, { window: peak }).fits).toBe(3);
    expect(score(timeline, raw.requests(timeline) as Iterable<PolicyRequest>, { window: peak - 1 }).fits).toBe(2);
  });

  test('counts the lines and calls that a request kept, and where the others are available', async () => {
    const timeline = await lateEdit();
    expect(rawOf(timeline).needed).toMatchObject({ lines: 1, kept: 1, calls: 1, callsKept: 1 });
    const gone = score(timeline, without(timeline, 2));
    // The request has the read's call with its path, and the file has not changed.
    expect(gone.needed).toMatchObject({
      lines: 1,
      kept: 0,
      activate: 0,
      readAgain: 1,
      lost: 0,
      calls: 1,
      callsKept: 0,
    });
    expect([gone.exact, gone.repeats, gone.series.missed]).toEqual([2, 1, [0, 0, 1]]);
    expect(score(timeline, without(timeline, 2), { reach: 'activate' }).needed).toMatchObject({ activate: 1, lost: 0 });
  });

  test('counts a missing text as lost if nothing in the request names it', async () => {
    const timeline = await lateEdit();
    const bare = (line: string) =>
      without(timeline, 2).map(({ parts }, at) => ({
        parts: at < 2 ? parts : [...parts.filter(({ item }) => item?.kind !== 'call'), { text: line }],
      }));
    const found = (line: string) => score(timeline, bare(line), { reach: 'activate' }).needed;
    expect(found('toolcall_ref id=5f0c1234 tool=read status=ok')).toMatchObject({ activate: 0, lost: 1 });
    expect(found('toolcall_ref id=5f0c1234 tool=read status=ok p/a.ts')).toMatchObject({ activate: 1, lost: 0 });
  });

  test('restores a missing text once a turn, at the price of a call and of the text', async () => {
    const [one, two, three] = [1, 2, 3].map((nth) => `const total${nth} = price * count;`);
    const lines = new RecordingLines().user('look').reads('r1', '/p/a.ts', `${one}\n${two}\n${three}\n`).says('seen');
    const timeline = await timelineOf(
      lines
        .user('use it')
        .says(one ?? '')
        .says(two ?? '')
        .user('more')
        .says(three ?? ''),
    );
    const { repeats, parts, needed } = score(timeline, without(timeline, 2));
    expect([needed.lines - needed.kept, repeats]).toEqual([3, 2]);
    const text = timeline.items.find(({ kind }) => kind === 'result')?.text.length ?? 0;
    const [first = 0, last = 0] = [2, 4].map((at) =>
      (without(timeline, 2)[at]?.parts ?? []).reduce((sum, part) => sum + part.text.length, 0),
    );
    expect(parts.misses).toBeCloseTo(tokensOf(0.1 * (first + last) + text * (1.25 + 0.1) + text * 1.25) + 2 * 5 * 80);
  });

  test('finds lines in texts of the policy itself', async () => {
    const timeline = await lateEdit();
    const requests = without(timeline, 0).map(({ parts }) => ({ parts: [...parts, { text: `active:\n${LINE}` }] }));
    expect(score(timeline, requests).needed.kept).toBe(1);
  });

  test('finds a line within a longer line of the request, such as a path in a list', async () => {
    const path = '/p/a/folder/of/a/long/name.ts';
    const timeline = await timelineOf(
      new RecordingLines().user('look').reads('r1', path, 'x\n').says('seen').user('again').reads('r2', path, 'x\n'),
    );
    const requests = (text: string): readonly PolicyRequest[] => timeline.calls.map(() => ({ parts: [{ text }] }));
    expect(score(timeline, requests(`id=1 type=file path=${path} chars=2`)).needed).toMatchObject({
      lines: 1,
      kept: 1,
    });
    expect(score(timeline, requests('id=1 type=file path=…/long/name.ts')).needed).toMatchObject({ lines: 1, kept: 0 });
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
    const [all, own] = [rawOf(timeline), score(timeline, without(timeline, 2))];
    const sessions = ['a', 'b', 'c'].map((session, i) => ({ session, raw: all, sent: all, own: i === 0 ? all : own }));
    const pooled = pooledScore(sessions);
    expect(pooled).toEqual(pooledScore(sessions));
    expect(pooled?.callsKept.value).toBeCloseTo(1 / 3);
    expect([pooled?.callsKept.low, pooled?.callsKept.high]).toEqual([0, 1]);
    const price = (one: PolicyScore): number => one.cost['Anthropic, 5 minutes'] ?? 0;
    const relative = (price(all) + 2 * price(own)) / (3 * price(all));
    expect(pooled?.vsSent.value).toBeCloseTo(relative);
    expect(pooled?.vsRaw?.value).toBeCloseTo(relative);
    expect(pooled?.worst).toBeCloseTo(Math.max(1, price(own) / price(all)));
    expect(Object.values(pooled?.shares ?? {}).reduce((sum, share) => sum + share, 0)).toBeCloseTo(1);
    // Each session has a third of the weight.
    expect(pooled?.withoutHeaviest).toMatchObject({ session: 'a', vsSent: price(own) / price(all) });
    expect(pooledScore([])).toBeUndefined();
  });

  test('are compared with `raw` only over the calls whose `raw` request fits', async () => {
    const timeline = await lateEdit();
    const all = score(timeline, raw.requests(timeline) as Iterable<PolicyRequest>, {
      window: rawOf(timeline).tokens.peak - 1,
    });
    // The dropped result is missing in the third call only, which does not count.
    const own = score(timeline, without(timeline, 2));
    expect(pooledScore([{ session: 'a', raw: all, sent: all, own }])?.vsRaw?.value).toBe(1);
    expect(pooledScore([{ session: 'a', raw: { ...all, fits: 0 }, sent: all, own }])?.vsRaw).toBeUndefined();
  });
});

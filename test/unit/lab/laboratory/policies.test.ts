import { describe, expect, test } from '@jest/globals';
import { type LabConfig, parseLabConfig } from '../../../../src/lab/laboratory/lab-config.js';
import { policiesOf } from '../../../../src/lab/laboratory/policy-table.js';
import type { RequestPart } from '../../../../src/lab/policies/policy.js';
import type { Timeline } from '../../../../src/lab/timeline/timeline.js';
import { RecordingLines } from '../../../support/replays.js';
import { noDatabase, timelineOf, timelinesOf } from '../../../support/timelines.js';

/** Returns the requests of a policy given as in a configuration. */
async function requestsOf(timeline: Timeline, policy: object): Promise<readonly (readonly RequestPart[])[]> {
  const { policies } = parseLabConfig({ policies: [policy] }, 'test');
  const [, made] = await policiesOf(policies, noDatabase);
  if (made === undefined) throw new Error('no policy');
  expect(made.unsupported?.(timeline)).toBeUndefined();
  const requests: (readonly RequestPart[])[] = [];
  for await (const { parts } of made.requests(timeline)) requests.push(parts);
  expect(requests).toHaveLength(timeline.calls.length);
  return requests;
}

/** Returns the calls whose results are whole in a request. */
const wholeIn = (parts: readonly RequestPart[] | undefined): readonly string[] =>
  (parts ?? []).flatMap(({ item }) => (item?.kind === 'result' && item.callId !== undefined ? [item.callId] : []));

/** Turns of some commands each, with outputs of one size. */
function commands(turns: readonly number[], chars: number): RecordingLines {
  const lines = new RecordingLines();
  let nth = 0;
  for (const [turn, count] of turns.entries()) {
    lines.user(`turn ${turn + 1}`);
    for (let i = 0; i < count; i++) {
      nth += 1;
      lines.calls(`c${nth}`, 'Bash', { command: `run ${nth}` }).answers(`c${nth}`, `${nth} `.padEnd(chars, 'x'));
    }
    lines.says(`turn ${turn + 1} is done`);
  }
  return lines;
}

const ids = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_one, i) => `c${from + i}`);

describe('policies of other programs', () => {
  test('keep the newest results one by one or in steps, for last-N masking', async () => {
    const timeline = await timelineOf(commands([6], 100));
    const each = await requestsOf(timeline, { policy: 'last-results', keep: 2 });
    expect(each.map(wholeIn)).toEqual([[], ids(1, 1), ids(1, 2), ids(2, 3), ids(3, 4), ids(4, 5), ids(5, 6)]);
    const steps = await requestsOf(timeline, { policy: 'last-results', keep: 2, step: 3 });
    expect(steps.map(wholeIn)).toEqual([[], ids(1, 1), ids(1, 2), ids(1, 3), ids(1, 4), ids(4, 5), ids(4, 6)]);
    expect(steps[5]?.map(({ text }) => text)).toContain('[1 lines of output left out]');
  });

  test('drop the oldest part with its calls and keep the first user message, for truncation', async () => {
    const timeline = await timelineOf(commands([8], 3_600));
    const requests = await requestsOf(timeline, { policy: 'truncate-oldest', over: 6_000, keep: 3_000 });
    expect(wholeIn(requests[5])).toEqual(ids(1, 5));
    const cut = requests[6] ?? [];
    expect(wholeIn(cut)).toEqual(ids(5, 6));
    expect(cut[0]?.text).toBe('turn 1');
    const called = cut.flatMap(({ item }) => (item?.kind === 'call' ? [item.callId] : []));
    expect(called).toEqual(ids(5, 6));
  });

  test("clear at a turn's end results behind 40,000 tokens and two turns, for OpenCode's pruning", async () => {
    // 8,000 of OpenCode's tokens each.
    const timeline = await timelineOf(commands([8, 1, 1, 1, 1], 32_000));
    const requests = await requestsOf(timeline, { policy: 'opencode-prune' });
    const firstOf = (turn: number): number => timeline.calls.findIndex((call) => call.turn === turn);
    expect(wholeIn(requests[firstOf(3)])).toEqual(ids(1, 9));
    // The eight results of the first turn precede turns 3 and 2. 40,000 tokens of them are kept,
    // 24,000 go.
    expect(wholeIn(requests[firstOf(4)])).toEqual(ids(4, 10));
    expect(wholeIn(requests[firstOf(5)])).toEqual(ids(4, 11));
  });

  test("put the summary of a recording's own compaction in place of the dropped part, if it has one", async () => {
    const lines = commands([2], 100);
    const boundary = {
      type: 'system',
      subtype: 'compact_boundary',
      uuid: 'b1',
      timestamp: '2026-01-05T09:30:00.000Z',
      sessionId: 's-1',
      compactMetadata: { trigger: 'auto' },
    };
    const summary = {
      type: 'user',
      isCompactSummary: true,
      uuid: 'b2',
      parentUuid: 'b1',
      timestamp: '2026-01-05T09:30:01.000Z',
      sessionId: 's-1',
      message: { role: 'user', content: 'what was done so far' },
    };
    const after = new RecordingLines()
      .user('go on')
      .says('going on')
      .lines.map((line) => line.replaceAll('"u-', '"v-'));
    const text = [...lines.lines, JSON.stringify(boundary), JSON.stringify(summary), ...after].join('\n');
    const [timeline] = await timelinesOf(`${text}\n`);
    if (timeline === undefined) throw new Error('no session');
    const requests = await requestsOf(timeline, { policy: 'own-compaction' });
    expect(requests.at(-1)?.map(({ text: part }) => part)).toEqual(['what was done so far', 'go on']);
    const [, made] = await policiesOf(
      parseLabConfig({ policies: [{ policy: 'own-compaction' }] }, 'test').policies,
      noDatabase,
    );
    expect(made?.unsupported?.(await timelineOf(commands([1], 10)))).toMatch(/did not compact/);
  });
});

describe("LangChain's clear-tool-uses", () => {
  const config: LabConfig['policies'] = parseLabConfig(
    { policies: [{ policy: 'clear-tool-uses', over: 4_000, keep: 2 }] },
    'test',
  ).policies;

  test('clears with its published class all but the newest results once a request is too long', async () => {
    const timeline = await timelineOf(commands([6], 4_000));
    const [, made] = await policiesOf(config, noDatabase);
    const reason = made?.unsupported?.(timeline);
    if (reason !== undefined) {
      // Only if the development dependencies are not installed.
      expect(reason).toMatch(/langchain is not installed/);
      return;
    }
    const requests = await requestsOf(timeline, { policy: 'clear-tool-uses', over: 4_000, keep: 2 });
    expect(wholeIn(requests[3])).toEqual(ids(1, 3));
    expect(wholeIn(requests[4])).toEqual(ids(3, 4));
    expect(requests[4]?.filter(({ text }) => text === '[cleared]')).toHaveLength(2);
  });
});

describe('clairvoyance', () => {
  const LINE = 'export const needed = "in the last turn";';

  /** A file that the last turn needs, beside long outputs that it does not. */
  function lateNeed(): RecordingLines {
    const lines = new RecordingLines().user('look').reads('r1', '/p/a.ts', `${LINE}\n${'// more of it\n'.repeat(50)}`);
    for (let i = 1; i <= 8; i++)
      lines.calls(`c${i}`, 'Bash', { command: `run ${i}` }).answers(`c${i}`, `${i} `.padEnd(8_000, 'x'));
    lines.says('seen').user('and now');
    for (let i = 9; i <= 14; i++) lines.calls(`c${i}`, 'Bash', { command: `run ${i}` }).answers(`c${i}`, 'ok');
    return lines.says('nearly').user('use it').says(LINE);
  }

  test.each(['at borders', 'at borders by rent', 'anywhere'])(
    'keeps only the result that a later answer needs: %s',
    async (where) => {
      const timeline = await timelineOf(lateNeed());
      const requests = await requestsOf(timeline, { policy: 'clairvoyant', where });
      const last = wholeIn(requests.at(-1));
      expect(last).toContain('r1');
      expect(last.filter((id) => Number(id.slice(1)) <= 8 && id.startsWith('c'))).toEqual([]);
      if (where === 'anywhere') return;
      // Inside a turn every request begins with the whole previous one.
      for (const [at, call] of timeline.calls.entries()) {
        if (call.opensTurn || at === 0) continue;
        const before = requests[at - 1] ?? [];
        expect(requests[at]?.slice(0, before.length)).toEqual(before);
      }
    },
  );
});

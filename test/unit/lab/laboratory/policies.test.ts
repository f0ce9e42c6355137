import { describe, expect, test } from '@jest/globals';
import { type LabConfig, parseLabConfig } from '../../../../src/lab/laboratory/lab-config.js';
import { policiesOf } from '../../../../src/lab/laboratory/policy-table.js';
import { asSent } from '../../../../src/lab/policies/as-sent.js';
import type { PolicyRequest, RequestPart } from '../../../../src/lab/policies/policy.js';
import type { Timeline } from '../../../../src/lab/timeline/timeline.js';
import { RecordingLines } from '../../../support/replays.js';
import { noDatabase, timelineOf, timelinesOf } from '../../../support/timelines.js';

/** Returns the requests of a policy given as in a configuration. */
async function requestsOf(timeline: Timeline, policy: object): Promise<readonly (readonly RequestPart[])[]> {
  const { policies } = parseLabConfig({ policies: [policy] }, 'test');
  const made = policiesOf(policies, noDatabase).at(-1);
  if (made === undefined) throw new Error('no policy');
  expect(await made.unsupported?.(timeline)).toBeUndefined();
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

  test("clear at a turn's end the results older than 40,000 tokens and two turns, for OpenCode", async () => {
    // Each result has 8,000 tokens by OpenCode's estimate.
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
    const requests = [...(asSent.requests(timeline) as Iterable<PolicyRequest>)];
    expect(requests.at(-1)?.parts.map(({ text: part }) => part)).toEqual(['what was done so far', 'go on']);
    // The recorded program paid once for the call that wrote the summary.
    expect(requests.flatMap(({ summarised }) => summarised?.written ?? [])).toEqual(['what was done so far'.length]);
    const whole = [...(asSent.requests(await timelineOf(commands([1], 10))) as Iterable<PolicyRequest>)];
    expect(whole.every(({ summarised }) => summarised === undefined)).toBe(true);
  });

  test('clear all but the newest results over a size, if that frees enough, for context editing', async () => {
    const timeline = await timelineOf(commands([6], 3_600));
    const settings = { policy: 'context-editing', over: 4_000, keep: 2 };
    expect((await requestsOf(timeline, settings)).map(wholeIn).at(-1)).toEqual(ids(5, 6));
    expect((await requestsOf(timeline, { ...settings, least: 9_000 })).map(wholeIn).at(-1)).toEqual(ids(1, 6));
  });

  test.each([
    [{ policy: 'server-compaction', over: 4_000 }, []],
    [{ policy: 'server-compaction', over: 4_000, keep: 2_500 }, ids(3, 4)],
    [{ policy: 'codex-notes', over: 4_000, notes: 50 }, []],
  ])('put a summary without any line before the user messages that stay: %j', async (settings, whole) => {
    const timeline = await timelineOf(commands([6], 3_600));
    const requests = await requestsOf(timeline, settings);
    const cut = requests[4] ?? [];
    expect(wholeIn(cut)).toEqual(whole);
    expect(cut[0]?.text).toMatch(/^\[summary before call 4\]/);
    expect(cut.some(({ item }) => item?.kind === 'user')).toBe(true);
  });

  test('keep the first events and the newest half around a summary, for the condenser', async () => {
    const timeline = await timelineOf(commands([8], 100));
    const requests = await requestsOf(timeline, { policy: 'openhands-condenser', events: 10, first: 1 });
    expect(wholeIn(requests[4])).toEqual(ids(1, 4));
    expect(wholeIn(requests[5])).toEqual(ids(4, 5));
    expect(requests[5]?.map(({ text }) => text)).toContain('turn 1');
  });

  test('compact after an idle time only, and only over a size', async () => {
    const lines = commands([3], 3_600)
      .user('later', Date.UTC(2026, 0, 5, 12))
      .says('yes');
    const timeline = await timelineOf(lines);
    const settings = { policy: 'idle-compaction', minutes: 10, over: 2_000 };
    expect((await requestsOf(timeline, settings)).map((parts) => wholeIn(parts).length)).toEqual([0, 1, 2, 3, 0]);
    expect(wholeIn((await requestsOf(timeline, { ...settings, over: 9_000 })).at(-1))).toEqual(ids(1, 3));
  });

  test('shorten a batch of results once and for good, for frozen compactions', async () => {
    const timeline = await timelineOf(commands([8], 3_600));
    const requests = await requestsOf(timeline, { policy: 'frozen-compaction', batch: 3_000, keep: 1 });
    expect(requests.map(wholeIn).map(({ length }) => length)).toEqual([0, 1, 2, 3, 1, 2, 3, 1, 2]);
    expect(requests[4]?.filter(({ text }) => text.includes('2800 characters left out'))).toHaveLength(3);
  });

  test('mark each dropped output with its call, for transparent compaction', async () => {
    const timeline = await timelineOf(commands([6], 3_600));
    const requests = await requestsOf(timeline, { policy: 'transparent-compact', over: 4_000, keep: 1 });
    expect(requests[4]?.map(({ text }) => text).join()).toContain('of [Bash run 1] stored]');
  });

  test('evict results that no later one depends on first, for linked eviction', async () => {
    const lines = new RecordingLines().user('go');
    for (const [id, path] of [
      ['a1', '/p/a.ts'],
      ['b1', '/p/b.ts'],
      ['a2', '/p/a.ts'],
    ] as const)
      lines.reads(id, path, `${id} `.repeat(900));
    for (let i = 1; i <= 5; i++)
      lines.calls(`c${i}`, 'Bash', { command: `run ${i}` }).answers(`c${i}`, 'ok'.repeat(i === 5 ? 2_000 : 1));
    const timeline = await timelineOf(lines.says('done'));
    const requests = await requestsOf(timeline, { policy: 'linked-eviction', over: 3_000, to: 2_800 });
    expect(wholeIn(requests.at(-1)).slice(0, 2)).toEqual(['a1', 'a2']);
  });

  test('keep only the newest output of equal calls and drop old arguments of failed ones, for DCP', async () => {
    const lines = new RecordingLines()
      .user('go')
      .calls('c1', 'Bash', { command: 'same' })
      .answers('c1', 'first output')
      .calls('c2', 'Bash', { command: 'same' })
      .answers('c2', 'second output')
      .says('done');
    const requests = await requestsOf(await timelineOf(lines), { policy: 'dcp' });
    expect(requests.map(wholeIn)).toEqual([[], ['c1'], ['c2']]);
  });

  test('may all drop the arguments of a call with its result, and wait for a message of the user', async () => {
    const timeline = await timelineOf(commands([4, 1], 100));
    const rights = { arguments: true, borders: true };
    const requests = await requestsOf(timeline, { policy: 'last-results', keep: 1, ...rights });
    expect(requests.map(wholeIn)).toEqual([[], ids(1, 1), ids(1, 2), ids(1, 3), ids(1, 4), ids(4, 4), ids(4, 5)]);
    const called = requests[5]?.flatMap(({ item, text }) => (item?.kind === 'call' ? [item.callId] : [text]));
    expect(called?.filter((one) => one === '[Bash run 1]' || one === 'c1')).toEqual(['[Bash run 1]']);
    const [published, ours] = [{}, rights].map((one) =>
      policiesOf(
        parseLabConfig({ policies: [{ policy: 'last-results', keep: 1, ...one }] }, 'test').policies,
        noDatabase,
      ).at(-1),
    );
    expect([published?.name, ours?.name, ours?.family]).toEqual([
      'last 1 results',
      'last 1 results + arguments, borders',
      published?.family,
    ]);
  });
});

describe("LangChain's clear-tool-uses", () => {
  const config: LabConfig['policies'] = parseLabConfig(
    { policies: [{ policy: 'clear-tool-uses', over: 4_000, keep: 2 }] },
    'test',
  ).policies;

  test('clears with its published class all but the newest results once a request is too long', async () => {
    const timeline = await timelineOf(commands([6], 4_000));
    const made = policiesOf(config, noDatabase).at(-1);
    const reason = await made?.unsupported?.(timeline);
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

  test('clears exactly when the characters of all texts and calls, divided by 4, exceed the setting', async () => {
    const timeline = await timelineOf(commands([6], 1_001));
    const reason = await policiesOf(config, noDatabase).at(-1)?.unsupported?.(timeline);
    if (reason !== undefined) return;
    const { ToolMessage, HumanMessage, AIMessage, ClearToolUsesEdit, contextEditingMiddleware } = await import(
      'langchain' as string
    );
    // The list before the last call, counted by the middleware itself.
    const list = timeline.items.slice(0, -1).map(({ kind, text, callId, tool, argumentTexts }) => {
      if (kind === 'result') return new ToolMessage({ content: text, tool_call_id: callId, name: tool });
      if (kind !== 'call') return new HumanMessage({ content: text });
      return new AIMessage({ content: '', tool_calls: [{ id: callId, name: tool, args: { ...argumentTexts } }] });
    });
    const counts: number[] = [];
    const reads = {
      apply: ({ countTokens }: { countTokens: (all: unknown) => number }) => void counts.push(countTokens(list)),
    };
    const middleware = contextEditingMiddleware({ edits: [reads, new ClearToolUsesEdit()] });
    await middleware.wrapModelCall({ messages: [...list], model: undefined }, () => undefined);
    const [counted = 0] = counts;
    expect(counted).toBeGreaterThan(1_200);
    const cleared = async (over: number): Promise<number | undefined> =>
      (await requestsOf(timeline, { policy: 'clear-tool-uses', over, keep: 2 }))
        .at(-1)
        ?.filter(({ text }) => text === '[cleared]').length;
    expect([await cleared(counted + 1), await cleared(counted)]).toEqual([0, 4]);
  });
});

describe('clairvoyance', () => {
  const LINE = 'export const needed = "in the last turn";';

  /**
   * A recording with a file that the last turn needs, and with long outputs that it does not need.
   */
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

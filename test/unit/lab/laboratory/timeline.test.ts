import { readFile } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import { neededLines } from '../../../../src/lab/timeline/needed-lines.js';
import { isVisible } from '../../../../src/lab/timeline/timeline.js';
import { recordingPath } from '../../../support/recordings.js';
import { RecordingLines } from '../../../support/replays.js';
import { timelineOf, timelinesOf } from '../../../support/timelines.js';

const kinds = (items: readonly { readonly kind: string }[]): readonly string[] => items.map(({ kind }) => kind);
const LINE = 'const total = price * count;';

describe('the timeline of a recording', () => {
  test('has one call per answer of the model, with the items of its request and its answer', async () => {
    const lines = new RecordingLines()
      .user('what is in a.ts?')
      .reads('r1', '/p/a.ts', `${LINE}\n`)
      .says('one line')
      .user('thanks')
      .says('gladly');
    const { calls, items } = await timelineOf(lines);
    expect(kinds(items)).toEqual(['user', 'call', 'result', 'text', 'user', 'text']);
    expect(calls.map(({ visible, opensTurn, turn, outputs }) => [visible, opensTurn, turn, kinds(outputs)])).toEqual([
      [1, true, 1, ['call']],
      [3, false, 1, ['text']],
      [5, true, 2, ['text']],
    ]);
    // The newest input of each request came a second before its answer.
    expect(calls.map(({ at = 0 }) => at - (calls[0]?.at ?? 0))).toEqual([0, 2_000, 4_000]);
  });

  test('groups calls of one answer despite results between them', async () => {
    const lines = new RecordingLines().user('both');
    const answer = (id: string, block: object, parent: string) =>
      JSON.stringify({
        parentUuid: parent,
        isSidechain: false,
        cwd: '/p',
        sessionId: 's-1',
        version: '2.1.0',
        type: 'assistant',
        uuid: id,
        timestamp: '2026-01-05T09:00:05.000Z',
        message: { id: 'm-1', type: 'message', role: 'assistant', model: 'a-model', content: [block] },
      });
    const one = answer('a1', { type: 'tool_use', id: 'c1', name: 'Bash', input: { command: 'ls' } }, 'u-1');
    const two = answer('a2', { type: 'tool_use', id: 'c2', name: 'Bash', input: { command: 'pwd' } }, 'a1');
    const results = new RecordingLines().user('').answers('c1', 'a b').answers('c2', '/p').says('done').lines.slice(1);
    const [timeline] = await timelinesOf(`${[...lines.lines, one, results[0], two, ...results.slice(1)].join('\n')}\n`);
    expect(timeline?.calls.map(({ outputs }) => kinds(outputs))).toEqual([['call', 'call'], ['text']]);
    // A request has the calls in a row, followed by the results.
    const request = timeline?.calls[1]?.items.slice(0, 5) ?? [];
    expect(kinds(request)).toEqual(['user', 'call', 'call', 'result', 'result']);
    expect(request.map(({ position }) => position)).toEqual([0, 1, 2, 3, 4]);
  });

  test('continues from the target of a rewind, and keeps the abandoned part with the calls that saw it', async () => {
    const lines = new RecordingLines().user('first').says('one');
    const place = lines.place;
    lines.user('wrong way').says('two').back(place).user('right way').says('three');
    const { calls, items } = await timelineOf(lines);
    const wrong = items.find(({ text }) => text === 'wrong way');
    const [, second, third] = calls;
    if (wrong === undefined || second === undefined || third === undefined)
      throw new Error('the recording lost something');
    expect([isVisible(second, wrong), isVisible(third, wrong)]).toEqual([true, false]);
    expect(third.items.slice(0, third.visible).map(({ text }) => text)).toEqual(['first', 'one', 'right way']);
  });

  test('marks results that show an outdated file', async () => {
    const text = `${LINE}\n`;
    const lines = new RecordingLines()
      .user('change it')
      .reads('r1', '/p/a.ts', text)
      .edits('e1', '/p/a.ts', text, 'count', 'amount')
      .reads('r2', '/p/b.ts', text)
      .says('done');
    const { items } = await timelineOf(lines);
    const results = items.filter(({ kind }) => kind === 'result');
    // The edit is the second call. From the third one on, the first result is stale.
    expect(results.map(({ staleFrom }) => staleFrom)).toEqual([2, undefined, undefined]);
  });

  test('reads the reported usage: of Codex with the cache, of Claude Code and pi without', async () => {
    const [codex] = await timelinesOf(await readFile(recordingPath('codex/coding.jsonl'), 'utf8'));
    const [pi] = await timelinesOf(await readFile(recordingPath('pi/coding.jsonl'), 'utf8'));
    const counted = [codex, pi].map(
      (timeline) => timeline?.calls.filter(({ recorded }) => recorded !== undefined).length ?? 0,
    );
    expect(Math.min(...counted)).toBeGreaterThan(0);
    for (const { recorded } of [...(codex?.calls ?? []), ...(pi?.calls ?? [])]) {
      if (recorded !== undefined) expect(recorded.prompt).toBeGreaterThanOrEqual(recorded.cacheRead ?? 0);
    }
  });
});

describe('needed lines', () => {
  test('are lines of an answer that a result, a user or the arguments of an earlier call had', async () => {
    const said = '// what the model wrote itself, at length';
    const lines = new RecordingLines()
      .user('change the total')
      .reads('r1', '/p/a.ts', `${LINE}\nshort\n`)
      .says(said)
      .edits('e1', '/p/a.ts', `${LINE}\nshort\n`, `  ${LINE}\nshort`, `${said}\nconst total = 0;`)
      .says(`it was ${LINE}`)
      .says(said);
    const needed = neededLines(await timelineOf(lines));
    // Only the third call, the edit, and the last call need lines. The edit needs the line of the
    // read. The model's own words are not needed, until the edit's arguments contain them.
    expect(needed.map((call) => call.map(({ line }) => line))).toEqual([[], [], [LINE], [], [said]]);
    expect(needed[2]?.[0]).toMatchObject({ isOwn: false });
    expect(needed[2]?.[0]?.holders.map(({ callId }) => callId)).toEqual(['r1']);
    expect(needed[4]?.[0]).toMatchObject({ isOwn: true });
    expect(needed[4]?.[0]?.holders.map(({ kind }) => kind)).toEqual(['text', 'call']);
  });

  test('are found behind line numbers, names of searched files and diff marks', async () => {
    const lines = new RecordingLines()
      .user('find it')
      .calls('g1', 'Grep', { pattern: 'total' })
      .answers('g1', `src/a.ts:12: ${LINE}`)
      .calls('p1', 'Bash', { command: `apply <<X\n-${LINE}\nX` })
      .answers('p1', 'ok')
      .says('done');
    const needed = neededLines(await timelineOf(lines));
    expect(needed.map(({ length }) => length)).toEqual([0, 1, 0]);
  });

  test('do not come from an abandoned part of the conversation', async () => {
    const lines = new RecordingLines().user('first').says('one');
    const place = lines.place;
    lines.user('look').reads('r1', '/p/a.ts', `${LINE}\n`).says('seen').back(place).user('again').says(LINE);
    expect(neededLines(await timelineOf(lines)).flat()).toEqual([]);
  });
});

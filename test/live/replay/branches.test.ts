import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { recordingPath } from '../../support/recordings.js';
import { longRecording, type RecordingLines, recordingFolder, replay } from '../../support/replays.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
beforeEach(async () => {
  recordings = await recordingFolder();
});
afterEach(() => recordings.remove());

const run = async (lines: RecordingLines) => replay(await recordings.write('a.jsonl', lines.text));
const chatOf = (report: Awaited<ReturnType<typeof run>>, session: string | undefined): readonly number[] =>
  report.contexts.each
    .filter((context) => context.session === session)
    .map(({ sections }) => sections.find(({ name }) => name === 'chat')?.chars ?? 0);

test('continues a rewound conversation in a fork without the undone part', async () => {
  const lines = longRecording(2);
  const here = lines.place;
  lines
    .user(`a long prompt ${'that is undone '.repeat(400)}`)
    .reads('toolu_x', '/p/src/undone.ts', 'export {};\n')
    .says('read it');
  lines.back(here).user('another prompt').says('answered');
  const report = await run(lines);
  const [first, second] = report.sessions;
  expect(report.sessions).toHaveLength(2);
  expect(second).toMatchObject({
    relation: 'branch',
    parent: first?.session,
    native_id: first?.native_id,
    contexts: 1,
  });
  // Two turns of twelve steps are shared. The prompt, the read with its message, and the answer are
  // not. The fork itself is a step.
  expect([first?.steps, second?.steps]).toEqual([12 + 4, 12 + 1 + 2]);
  expect(Math.max(...chatOf(report, first?.session))).toBeGreaterThan(6_000);
  expect(Math.max(...chatOf(report, second?.session))).toBeLessThan(6_000);
  // It keeps its reads before the rewind; later reads do not belong to this conversation.
  const pools = report.contexts.each.map(({ session, pool }) => [session, pool]);
  expect(pools.at(-1)).toEqual([second?.session, pools.at(-4)?.[1]]);
});

test('shares the common part of every branch in a tree of rewinds', async () => {
  const entry = (id: string, parentId: string | null, role: 'user' | 'assistant', text: string): string =>
    JSON.stringify({
      type: 'message',
      id,
      parentId,
      timestamp: '2026-01-05T09:00:00.000Z',
      message: {
        role,
        content: [{ type: 'text', text }],
        ...(role === 'assistant' ? { provider: 'p', model: 'm', stopReason: 'stop' } : {}),
      },
    });
  const header = JSON.stringify({
    type: 'session',
    version: 3,
    id: 'tree',
    timestamp: '2026-01-05T09:00:00.000Z',
    cwd: '/p',
  });
  const tree = [
    entry('u1', null, 'user', 'one'),
    entry('a1', 'u1', 'assistant', 'first'),
    entry('u2', 'a1', 'user', 'this way'),
    entry('a2', 'u2', 'assistant', 'gone'),
    entry('u3', 'a1', 'user', 'that way'),
    entry('a3', 'u3', 'assistant', 'gone too'),
    entry('u4', 'a2', 'user', 'this way again'),
    entry('a4', 'u4', 'assistant', 'here'),
  ];
  const report = await replay(await recordings.write('tree.jsonl', `${[header, ...tree].join('\n')}\n`));
  const [one, two, three] = report.sessions;
  expect([one?.steps, two?.steps, three?.steps]).toEqual([4, 2 + 1 + 2, 4 + 1 + 2]);
  expect([two, three].map((session) => [session?.relation, session?.parent])).toEqual([
    ['branch', one?.session],
    ['branch', one?.session],
  ]);
  expect(chatOf(report, three?.session)[0]).toBeGreaterThan(chatOf(report, two?.session)[0] ?? 0);
});

test.each([
  ['pi/coding.jsonl', 'pi'],
  ['gemini-cli/session.jsonl', 'gemini-cli'],
])('creates a branch for each rewind of %s', async (name, format) => {
  const one = await replay(recordingPath(name));
  expect(one.recording.formats).toEqual([format]);
  expect(one.recorded.events.rewind).toBeGreaterThan(0);
  expect(one.sessions.filter(({ relation }) => relation === 'branch')).toHaveLength(one.recorded.events.rewind ?? 0);
});

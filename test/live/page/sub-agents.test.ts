import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { conversation } from '../../../src/page/server/conversation.js';
import { SessionRows } from '../../../src/review/rows/session-rows.js';
import { RecordingLines, replay, reviewedRecordings } from '../../support/replays.js';

let room: Awaited<ReturnType<typeof reviewedRecordings>>;
beforeAll(async () => {
  room = await reviewedRecordings();
});
afterAll(() => room.close());

test('a sub-agent of a recording has the session that started it, and the call', async () => {
  const prompt = 'Find the fault in the cart.';
  const lines = new RecordingLines().user('Mend the cart.').calls('t1', 'Task', { description: 'Find', prompt });
  const aside = (type: string, content: unknown): string =>
    JSON.stringify({
      ...JSON.parse(lines.lines.at(-1) ?? '{}'),
      type,
      uuid: `side-${type}`,
      parentUuid: null,
      isSidechain: true,
      agentId: 'a1',
      message: { id: `side-${type}`, type: 'message', role: type, model: 'a-model', content },
    });
  const side = [aside('user', prompt), aside('assistant', [{ type: 'text', text: 'It is in the total.' }])];
  const rest = lines.answers('t1', 'It is in the total.').says('Mended.').lines.slice(2);
  const text = `${[...lines.lines.slice(0, 2), ...side, ...rest].join('\n')}\n`;
  const { sessions } = await replay(await room.recordings.write('side.jsonl', text));
  expect(sessions).toHaveLength(2);
  const [main = '', sub] = sessions.map(({ session }) => session);
  const rows = await new SessionRows(room.recordings.folder).list(await room.reviewer.store.latest(), { text: main });
  expect(rows.map(({ id, parent }) => [id, parent])).toEqual(
    expect.arrayContaining([
      [main, undefined],
      [sub, { session: main, kind: 'sub-agent', call: `t1@${main}` }],
    ]),
  );
  const told = await conversation(await Timeline.open(room.reviewer.store), { session: sub ?? '', limit: 10 });
  expect(told.rows.flatMap((row) => (row.kind === 'message' ? [row.role] : []))).toEqual(['parent', 'assistant']);
});

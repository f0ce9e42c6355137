import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { noteImported } from '../../../src/host/imported-sessions.js';
import { sessionId } from '../../../src/objects/ids.js';
import { compared } from '../../../src/page/server/compared.js';
import { conversation } from '../../../src/page/server/conversation.js';
import { sessionMoney } from '../../../src/page/server/session-money.js';
import { sessionRowAnswer } from '../../../src/review/http/session-list.js';
import { SessionRows } from '../../../src/review/rows/session-rows.js';
import { openClient } from '../../support/context.js';
import { RecordingLines, replay, reviewedRecordings } from '../../support/replays.js';

/** Its input costs 3 US dollars for a million tokens. */
const MODEL = 'claude-sonnet-4-5';

let room: Awaited<ReturnType<typeof reviewedRecordings>>;
beforeAll(async () => {
  room = await reviewedRecordings();
});
afterAll(() => room.close());

test('a sub-agent of a recording has the session that started it, and the call', async () => {
  const prompt = 'Find the fault in the cart.';
  const lines = new RecordingLines(MODEL).user('Mend the cart.').calls('t1', 'Task', { description: 'Find', prompt });
  const aside = (type: string, content: unknown): string =>
    JSON.stringify({
      ...JSON.parse(lines.lines.at(-1) ?? '{}'),
      type,
      uuid: `side-${type}`,
      parentUuid: null,
      isSidechain: true,
      agentId: 'a1',
      message: {
        id: `side-${type}`,
        type: 'message',
        role: type,
        model: MODEL,
        content,
        ...(type === 'assistant' ? { usage: { input_tokens: 1_000_000, output_tokens: 0 } } : {}),
      },
    });
  const side = [aside('user', prompt), aside('assistant', [{ type: 'text', text: 'It is in the total.' }])];
  const rest = lines
    .answers('t1', 'It is in the total.')
    .says('Mended.', undefined, { input_tokens: 2_000_000, output_tokens: 0 })
    .lines.slice(2);
  const text = `${[...lines.lines.slice(0, 2), ...side, ...rest].join('\n')}\n`;
  const { sessions } = await replay(await room.recordings.write('side.jsonl', text));
  expect(sessions).toHaveLength(2);
  const [main = '', sub] = sessions.map(({ session }) => session);
  const present = await room.reviewer.store.latest();
  const list = new SessionRows(room.recordings.folder);
  const rows = await list.list(present, { text: main });
  expect(rows.map(({ id, parent }) => [id, parent])).toEqual(
    expect.arrayContaining([
      [main, undefined],
      [sub, { session: main, kind: 'sub-agent', call: `t1@${main}` }],
    ]),
  );
  const timeline = await Timeline.open(room.reviewer.store);
  const told = await conversation(timeline, { session: sub ?? '', limit: 10 });
  expect(told.rows.flatMap((row) => (row.kind === 'message' ? [row.role] : []))).toEqual(['parent', 'assistant']);

  // Each links to the other.
  const parent = await conversation(timeline, { session: main, limit: 10 });
  const task = parent.rows.find((row) => row.kind === 'call');
  expect(task).toMatchObject({ name: 'task Find', sub_agent: sub });
  expect(told.started_by).toEqual({ session: main, step: task?.step, name: 'task Find' });
  expect(parent.started_by).toBeNull();

  // The own cost, and the cost with the sub-agent, have the same scope everywhere.
  const counted = await list.withFigures(present, await list.described(present, rows), { mostMs: 60_000 });
  const shown = counted.map((row) => sessionRowAnswer(row)).find(({ id }) => id === main);
  const money = await sessionMoney(timeline, main);
  const { sides } = await compared(timeline, { list: undefined }, [main, sub ?? '']);
  for (const one of [shown, sides[0]?.row]) {
    expect(one?.figures).toMatchObject({ cost: { amount: 6 }, tokens: { total: 2_000_000 } });
    expect(one?.with_sub_agents).toMatchObject({ sessions: 1, cost: { amount: 9 }, tokens: { total: 3_000_000 } });
  }
  expect(money.spent).toMatchObject({ amount: 6 });
  expect(money.with_sub_agents).toEqual(shown?.with_sub_agents);
  expect(counted.find(({ id }) => id === sub)?.withSubAgents).toBeUndefined();
  expect(sides[1]?.row.with_sub_agents).toBeNull();
});

test('a fork has the recorded folder of its parent, not that of the server', async () => {
  const { sessions } = await replay(await room.recordings.write('forked.jsonl', new RecordingLines().user('Go.').text));
  const main = sessionId(sessions[0]?.session ?? '');
  const { folder: dataDir } = room.recordings;
  await noteImported(dataDir, main, { agent: 'An agent', title: 'Go.', folder: '/p', path: 'x', size: 1, mtime: 1 });
  const fork = sessionId(`${main}-fork`);
  const client = await openClient(dataDir, { shareSessions: true });
  await client.forkSession(main, { id: fork });
  await client.close();
  const rows = await new SessionRows(dataDir).list(await room.reviewer.store.latest(), { text: main });
  expect(rows.map(({ id, folder }) => [id, folder])).toEqual(
    expect.arrayContaining([
      [main, '/p'],
      [fork, '/p'],
    ]),
  );
});

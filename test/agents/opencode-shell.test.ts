import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../src/client/session/context-client.js';
import { loopTroubles } from '../../src/process/process-reports.js';
import { wordsOf } from './loop-project.js';
import { type LoopSetting, loopSetting } from './loop-setting.js';
import { showsLog, startLoopedServer } from './looped-agent.js';

describe('a user’s own command in a session of OpenCode', () => {
  let setting: LoopSetting;
  let client: ContextClient;
  let session: string;

  beforeAll(async () => {
    setting = await loopSetting();
    const { server, session: id, during } = await startLoopedServer(setting);
    session = id;
    await during(() => server.prompt(id, 'request 1'), showsLog('opencode', 1), { say: 'Said before.' });
    await server.shell(id, 'echo run by the user');
    await during(() => server.prompt(id, 'request 2'), { say: 'Said after.' });
    await server.end();
    client = await setting.reader();
  }, 200_000);

  afterAll(() => setting.close());

  test('belongs to the session: nothing is undone, and nothing is recorded twice', async () => {
    expect((await client.listSessions()).map(({ id }) => String(id))).toEqual([session]);
    const words = await wordsOf(client, session);
    for (const word of ['Said before.', 'Said after.']) expect(words.filter((text) => text === word)).toEqual([word]);
    const { state } = await client.openSession({ id: session });
    expect(state.marks.flatMap(({ event }) => event ?? [])).toEqual([]);
    expect(state.sets.index.filter((id) => state.isToolResult(id))).toHaveLength(2);
    expect(await loopTroubles(setting.dataDir)).toEqual([]);
  });
});

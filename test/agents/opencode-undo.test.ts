import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loopTroubles } from '../../src/process/process-reports.js';
import { type LoopSetting, loopSetting } from './loop-setting.js';
import { showsLog, startLoopedServer } from './looped-agent.js';
import { checkUndone } from './wire-checks.js';

describe('a request undone in OpenCode', () => {
  let setting: LoopSetting;
  let session = '';

  beforeAll(async () => {
    setting = await loopSetting();
    const { server, session: id, during } = await startLoopedServer(setting);
    session = id;
    const request = (words: string, n: number, say: string) =>
      during(() => server.prompt(id, words), showsLog('opencode', n), { say });
    await request('request one', 1, 'This is the first.');
    await request('request two', 2, 'This is the second.');
    await server.undo(id);
    await request('request two, otherwise', 3, 'This is another second.');
    await server.end();
  }, 200_000);

  afterAll(() => setting.close());

  test('stays in the session; OpenCode continues in a branch of it', async () => {
    expect(await loopTroubles(setting.dataDir)).toEqual([]);
    await checkUndone(await setting.reader(), session, setting.model.calls);
  });
});

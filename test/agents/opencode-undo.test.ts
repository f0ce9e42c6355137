import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loopTroubles } from '../../src/process/process-reports.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { type LoopModel, type Move, startLoopModel } from './loop-model.js';
import { makeProject, reader, startNode, stopUnusedNode } from './loop-project.js';
import { OpencodeServer } from './opencode-server.js';

const shell = (n: number): Move => ({
  tools: [{ name: 'bash', args: { command: `cat notes/s${n}.log`, description: 'looks' } }],
});

describe('a request undone in OpenCode', () => {
  const removals: (() => Promise<unknown>)[] = [];
  let [root, home, dataDir] = ['', '', ''];
  let model: LoopModel;
  let session = '';

  beforeAll(async () => {
    const places = await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot()]);
    [root, home, dataDir] = places.map((place) => place.root) as [string, string, string];
    model = await startLoopModel();
    removals.push(() => model.close(), ...places.map(({ remove }) => remove));
    await makeProject(root);
    await startNode(dataDir);
    removals.unshift(() => stopUnusedNode(dataDir));
    const server = await OpencodeServer.start({
      home,
      cwd: root,
      dataDir,
      model,
      plugin: join(dirname(cliPath), 'opencode.js'),
    });
    removals.unshift(async () => server.kill());
    session = await server.newSession();
    model.add([shell(1), { say: 'This is the first.' }]);
    await server.prompt(session, 'request one');
    model.add([shell(2), { say: 'This is the second.' }]);
    await server.prompt(session, 'request two');
    await server.undo(session);
    model.add([shell(3), { say: 'This is another second.' }]);
    await server.prompt(session, 'request two, otherwise');
    await server.end();
  }, 200_000);

  afterAll(async () => {
    for (const remove of removals) await remove();
  });

  test('stays in the session; OpenCode continues in a branch of it', async () => {
    expect(await loopTroubles(dataDir)).toEqual([]);
    const last = model.calls.filter((call) => call.main).at(-1)?.raw ?? '';
    expect(last).toContain('This is the first.');
    expect(last).not.toContain('This is the second.');
    const client = await reader(dataDir, root);
    const words = async (id: string) =>
      (await client.openSession({ id })).state.turns.flatMap(({ messages }) =>
        messages.map(({ text }) => text).filter((text) => text !== ''),
      );
    expect(await words(session)).toEqual(['request one', 'This is the first.', 'request two', 'This is the second.']);
    expect(await words(`${session}.2`)).toEqual([
      'request one',
      'This is the first.',
      'request two, otherwise',
      'This is another second.',
    ]);
    for (const id of [session, `${session}.2`])
      expect((await verifySession(await client.delivered(), id)).contexts.unequal).toEqual([]);
    await client.close();
  });
});

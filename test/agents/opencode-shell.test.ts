import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../src/client/session/context-client.js';
import { loopTroubles } from '../../src/process/process-reports.js';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { type Move, startLoopModel } from './loop-model.js';
import { makeProject, reader, startNode, stopUnusedNode } from './loop-project.js';
import { OpencodeServer } from './opencode-server.js';

const looks: Move = { tools: [{ name: 'bash', args: { command: 'cat notes/s1.log', description: 'looks' } }] };

describe('a user’s own command in a session of OpenCode', () => {
  const removals: (() => Promise<unknown>)[] = [];
  let client: ContextClient;
  let dataDir: string;
  let session: string;

  beforeAll(async () => {
    const places = await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot()]);
    const [root, home, data] = places.map((place) => place.root) as [string, string, string];
    dataDir = data;
    const model = await startLoopModel();
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
    model.add([looks, { say: 'Said before.' }]);
    await server.prompt(session, 'request 1');
    await server.shell(session, 'echo run by the user');
    model.add([{ say: 'Said after.' }]);
    await server.prompt(session, 'request 2');
    await server.end();
    client = await reader(dataDir, root);
    removals.unshift(() => client.close());
  }, 200_000);

  afterAll(async () => {
    for (const remove of removals) await remove();
  });

  test('belongs to the session: nothing is undone, nothing comes twice', async () => {
    expect((await client.listSessions()).map(({ id }) => String(id))).toEqual([session]);
    const { state } = await client.openSession({ id: session });
    const words = state.turns.flatMap(({ messages }) => messages.map(({ text }) => text));
    for (const word of ['Said before.', 'Said after.']) expect(words.filter((text) => text === word)).toEqual([word]);
    expect(state.marks.flatMap(({ event }) => event ?? [])).toEqual([]);
    expect(state.sets.index.filter((id) => state.isToolResult(id))).toHaveLength(2);
    expect(await loopTroubles(dataDir)).toEqual([]);
  });
});

import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ContextClient } from '../../../src/client/session/context-client.js';
import { answerReviewRequest, followRequest } from '../../../src/http/review-routes.js';
import { filesystemId } from '../../../src/objects/ids.js';
import { testAddress } from '../../support/context.js';
import { hiddenTexts, question } from '../../support/contracts.js';
import { temporaryRoot } from '../../support/mcp-clients.js';

let folder: Awaited<ReturnType<typeof temporaryRoot>>;
const clients: ContextClient[] = [];
const open = async (address: Parameters<typeof ContextClient.create>[0]['address']): Promise<ContextClient> => {
  const { root } = folder;
  const client = await ContextClient.create({
    address,
    roots: [root],
    cwd: root,
    dataDir: join(root, 'data'),
    track: false,
    filesystemId: filesystemId('fs-on-its-way'),
  });
  clients.push(client);
  return client;
};

beforeAll(async () => {
  folder = await temporaryRoot();
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close().catch(() => undefined)));
  await folder.remove();
});

test('reports a session that another process has acknowledged as pending, not as missing', async () => {
  const agent = await open({ kind: 'unix', socketPath: join(folder.root, 'no-node.sock') });
  const session = await agent.openSession();
  await session.reportMessage({ role: 'user', text: 'Begin' });
  const server = await open(testAddress());
  const ask = (name: string) =>
    answerReviewRequest(
      question('/v1/log'),
      { client: server, query: new URLSearchParams({ session: name }), all: false, hiddenTexts },
      new ServerResponse(new IncomingMessage(new Socket())),
    );
  const onItsWay = {
    code: 'node-unavailable',
    message: expect.stringContaining(`session ${session.id} was acknowledged`),
  };
  await expect(ask(session.id)).rejects.toMatchObject(onItsWay);
  await expect(followRequest(server, session.id, new URLSearchParams())).rejects.toMatchObject(onItsWay);
  await expect(ask('never-heard-of')).rejects.toMatchObject({ code: 'unknown-session' });
});

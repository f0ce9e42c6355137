import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { nodeStatus } from '../../src/node/node-status.js';
import { stopNode } from '../../src/node/stop-node.js';
import { parseNodeUrls } from '../../src/xtdb/address.js';
import { NodeList } from '../../src/xtdb/node-list.js';
import { XtdbClient } from '../../src/xtdb/xtdb-client.js';
import { type Agent, stdioAgent } from '../support/mcp-clients.js';
import { runCli } from '../support/run-cli.js';
import { inTurn, nodesProxy } from './nodes-proxy.js';
import { type PostgresServer, postgresServer } from './postgres-server.js';
import { sharedLogOn, startSharedNode } from './shared-node.js';

let folder: string;
let postgres: PostgresServer;
let sockets: readonly string[];
const data = (name: string): string => join(folder, name);

const startNode = (name: string): Promise<string> =>
  startSharedNode(data(name), sharedLogOn({ postgres, passwordFile: join(folder, 'password') }));

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-several-')));
  postgres = await postgresServer(['log']);
  await writeFile(join(folder, 'password'), postgres.password);
  sockets = [await startNode('a'), await startNode('b')];
  await mkdir(join(folder, 'project'));
});

afterAll(async () => {
  await Promise.all(['a', 'b'].map((name) => stopNode(data(name))));
  await postgres?.remove();
  await rm(folder, { recursive: true, force: true });
});

/** A proxy that sends each request to the next node in turn. */
const alternating = () => nodesProxy(sockets, { choose: inTurn(sockets.length) });

async function work(agent: Agent, name: string, [from, to]: readonly [from: number, to: number]): Promise<void> {
  for (let i = from; i < to; i++) {
    expect(await agent.call('write', { path: `${name}-${i}.txt`, content: `text ${i} of ${name}\n` })).toMatchObject({
      isError: false,
    });
    expect(await agent.call('read', { path: `${name}-${i}.txt` })).toMatchObject({ isError: false });
    const { text, isError } = await agent.call('context', { full: true });
    expect(isError).toBe(false);
    expect(text).toContain(`text ${i} of ${name}`);
  }
}

describe('a client of several nodes over one log', () => {
  test('reads its writes through a proxy that switches nodes at each request', async () => {
    const proxy = await alternating();
    try {
      const env = { XTDB_URL: proxy.url };
      const agent = await stdioAgent(join(folder, 'project'), ['--data', data('client'), '--session', 'proxied'], env);
      await work(agent, 'proxied', [0, 10]).finally(() => agent.close());
      expect(await runCli(['verify', 'proxied', '--data', data('client')], env)).toMatchObject({ code: 0 });
      expect(Math.min(...proxy.counts)).toBeGreaterThan(20);
    } finally {
      proxy.close();
    }
  });

  test('never reads an older state than before, whichever node answers', async () => {
    const proxy = await alternating();
    const writer = new XtdbClient({ kind: 'unix', socketPath: sockets[0] ?? '' });
    const reader = new XtdbClient({ kind: 'url', origin: proxy.url });
    try {
      let newest = -1;
      for (let i = 0; i < 40; i++) {
        const { receipt } = await writer.execute([{ op: 'put', doc: { 'xt/id': 'monotonic', type: `at ${i}` } }]);
        for (let read = 0; read < 3; read++) {
          const db = await reader.db();
          expect(db.basis.txId).toBeGreaterThanOrEqual(newest);
          newest = db.basis.txId ?? newest;
          // A basis of one node, requested from the other.
          expect(await db.entity('monotonic')).toBeDefined();
          expect((await reader.latestCompletedTx())?.txId).toBeGreaterThanOrEqual(newest);
        }
        expect((await (await reader.db({ txId: receipt.txId })).entity('monotonic'))?.type).toBe(`at ${i}`);
      }
    } finally {
      await Promise.all([writer.close(), reader.close()]);
      proxy.close();
    }
  });

  test('continues with the other node if one is killed during its calls; loses and doubles no step', async () => {
    const env = { XTDB_URL: sockets.map((socket) => `unix:${socket}`).join(',') };
    const agent = await stdioAgent(join(folder, 'project'), ['--data', data('client'), '--session', 'listed'], env);
    try {
      await work(agent, 'listed', [0, 5]);
      const working = work(agent, 'listed', [5, 15]);
      const status = await nodeStatus(data('a'));
      if (!status.running || status.pid === null) throw new Error('node a does not run');
      process.kill(status.supervisorPid, 'SIGKILL');
      process.kill(status.pid, 'SIGKILL');
      await working;
    } finally {
      await agent.close();
    }
    const verified = await runCli(['verify', 'listed', '--data', data('client')], env);
    // Three calls, fifteen times.
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringMatching(/answers {3}\d+ of 45 rebuilt/) });
    expect(await readFile(join(folder, 'project', 'listed-14.txt'), 'utf8')).toBe('text 14 of listed\n');
    // A client that starts while one node is down finds the other one, in any order of addresses.
    const other = { XTDB_URL: env.XTDB_URL.split(',').reverse().join(',') };
    expect(await runCli(['verify', 'listed', '--data', data('client')], other)).toMatchObject({
      code: 0,
      stdout: verified.stdout,
    });
  });

  test('reports for each node why it is unusable, and uses one that returns', async () => {
    const [a = '', b = ''] = sockets;
    const gone = join(folder, 'gone.sock');
    const addresses = parseNodeUrls(`unix:${gone},unix:${a}`);
    await expect(new NodeList(() => addresses).choose()).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/None of the 2 nodes.*gone\.sock.*xtdb\.sock/),
    });
    const list = new NodeList(() => parseNodeUrls(`unix:${gone},unix:${a},unix:${b}`));
    expect(await list.choose()).toMatchObject({ socketPath: b });
    await startNode('a');
    // The node in use stays in use.
    expect(await list.choose()).toMatchObject({ socketPath: b });
    expect(await new NodeList(() => addresses).choose()).toMatchObject({ socketPath: a });
  });
});

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createContextClient } from '../../../src/index.js';
import { inspectJournals } from '../../../src/journal/journals.js';
import { sessionId } from '../../../src/objects/ids.js';
import { parseNodeUrl } from '../../../src/xtdb/address.js';
import { openClient } from '../../support/context.js';
import { HarnessApi } from '../../support/harness-api.js';
import { startServe, stdioAgent, temporaryRoot } from '../../support/mcp-clients.js';
import { Road } from '../../support/road.js';
import { callReport } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';

/** An address without a listener. */
const DEAD = 'http://127.0.0.1:9';

describe('a process that starts while its nodes are down', () => {
  let root: string;
  let remove: () => Promise<void>;
  let data: string;
  let road: Road;
  let name: string;

  beforeEach(async () => {
    name = `named-${randomUUID().slice(0, 8)}`;
    ({ root, remove } = await temporaryRoot());
    data = await mkdtemp(join(tmpdir(), 'palimpsest-away-'));
    await writeFile(join(root, 'a.txt'), 'alpha\n');
    road = await Road.fromPort(data);
    await road.close();
  });
  afterEach(async () => {
    await road.close();
    await rm(data, { recursive: true, force: true });
    await remove();
  });

  const waiting = async (): Promise<number> => {
    const remote = join(data, 'remote');
    const journals = await Promise.all((await readdir(remote)).map((one) => inspectJournals(join(remote, one))));
    return journals.flat().reduce((sum, { pending }) => sum + pending, 0);
  };
  const stepsOf = async (id: string) => {
    const client = await openClient(root);
    try {
      return (await (await client.snapshot()).steps(sessionId(id))).length;
    } finally {
      await client.close();
    }
  };

  test.each([['one'], ['several']])(
    'over MCP, %s: works in a new session and delivers later; refuses a named one with every address',
    async (how) => {
      const urls = how === 'one' ? [road.url] : [DEAD, road.url];
      const env = { XTDB_URL: urls.join(',') };
      const flags = ['--data', data, '--log-level', 'silent'];
      const named = await stdioAgent(root, [...flags, '--session', name], env);
      const agent = await stdioAgent(root, flags, env);
      try {
        for (const path of ['a.txt', 'b.txt']) {
          const { text, isError } = await named.call('write', { path, content: 'not written' });
          expect([isError, text]).toEqual([
            true,
            expect.stringMatching(/^Error: write could not begin: .*palimpsest doctor.*\nNothing was done/),
          ]);
          for (const url of urls) expect(text).toContain(url);
        }
        expect((await agent.call('write', { path: 'c.txt', content: 'written' })).isError).toBe(false);
        const read = await agent.call('read', { path: 'a.txt' });
        expect(read.text).toMatch(/\nalpha\n$/);
        expect((await agent.call('context', { full: true })).text).toContain('alpha');
        await road.open();
        // Pending steps are retried without another call.
        await until(waiting, (count) => count === 0);
        const call = String(read.meta.call);
        expect(await stepsOf(call.slice(0, call.indexOf(':')))).toBe(3);
        expect((await named.call('read', { path: 'a.txt' })).isError).toBe(false);
      } finally {
        await Promise.all([agent.close(), named.close()]);
      }
    },
  );

  test('works over HTTP', async () => {
    const serve = await startServe(['--data', data, '--log-level', 'silent'], root, {
      XTDB_URL: `${DEAD},${road.url}`,
    });
    const api = new HarnessApi(serve);
    try {
      const refused = await api.refused('/v1/sessions', { body: { id: name } });
      expect(refused).toMatchObject({ status: 503, code: 'unreachable' });
      for (const said of [DEAD, road.url, 'palimpsest doctor']) expect(refused.problem.detail).toContain(said);
      const { id } = await api.call('openSession', undefined, {});
      await api.call('reportMessages', id, { messages: [{ role: 'user', content: 'begun without a database' }] });
      expect((await api.call('beginTurn', id, {})).text).toContain('user: begun without a database');
      await road.open();
      await until(waiting, (count) => count === 0);
      expect(await stepsOf(id)).toBe(1);
    } finally {
      await api.close();
      await serve.close();
    }
  });

  test('refuses a new session over HTTP once the node that answers may not be used', async () => {
    const serve = await startServe(['--data', data, '--log-level', 'silent'], root, { XTDB_URL: road.url });
    const api = new HarnessApi(serve);
    // Slower than the shortest poll, which reveals a caller that does not wait for its answer.
    const closed = createServer((_request, response) => void setTimeout(() => response.writeHead(401).end(), 100));
    try {
      await api.call('openSession', undefined, {});
      closed.listen(Number(new URL(road.url).port), '127.0.0.1');
      await once(closed, 'listening');
      // The running poll may still have found no node.
      await until(
        () => api.send('/v1/sessions', {}),
        ({ status }) => status !== 201 && status !== 200,
      );
      expect((await api.refused('/v1/sessions')).problem.detail).toContain('401');
    } finally {
      await api.close();
      await serve.close();
      closed.closeAllConnections();
      closed.close();
    }
  });

  test('works in the library', async () => {
    const harness = await createContextClient({
      dataDir: data,
      address: parseNodeUrl(road.url),
      roots: [root],
      cwd: root,
      track: false,
    });
    const { client } = harness;
    try {
      const session = await client.openSession();
      const { applied } = await session.recordCall(callReport({ content: 'begun without a database' }));
      await expect(client.openSession({ id: name })).rejects.toMatchObject({
        name: 'XtdbError',
        code: 'unreachable',
        message: expect.stringMatching(
          new RegExp(`^session ${name} cannot be opened until .* cannot reach the node at .*palimpsest doctor`),
        ),
      });
      await road.open();
      await applied;
      expect(await stepsOf(session.id)).toBe(1);
    } finally {
      await harness.close();
    }
  });
});

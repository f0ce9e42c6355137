import { once } from 'node:events';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parseNodeUrl } from '../../../src/xtdb/address.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { stdioAgent } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';
import { testNodeAddress, uniquePrefix } from '../../support/xtdb.js';

const PREFIX = '/databases/team';

let folder: string;
let data: string;
let socketPath: string;
let gateway: Server;
let url: string;
let token = 'first-token';

/** The suite's node behind a gateway: below a path, for clients with the token. */
function pass(incoming: IncomingMessage, answer: ServerResponse): void {
  const path = incoming.url ?? '';
  if (!path.startsWith(`${PREFIX}/_xtdb/`)) return void answer.writeHead(404).end();
  if (incoming.headers.authorization !== `Bearer ${token}`) return void answer.writeHead(401).end();
  const { authorization: _, ...headers } = incoming.headers;
  const onward = request({ socketPath, path: path.slice(PREFIX.length), method: incoming.method, headers }, (reply) => {
    answer.writeHead(reply.statusCode ?? 502, reply.headers);
    reply.pipe(answer);
  });
  incoming.pipe(onward);
}

beforeAll(async () => {
  const address = testNodeAddress();
  socketPath = address.kind === 'unix' ? address.socketPath : '';
  folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-addresses-')));
  data = join(folder, 'data');
  gateway = createServer(pass).listen(0, '127.0.0.1');
  await once(gateway, 'listening');
  url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}${PREFIX}`;
});
afterAll(async () => {
  gateway.closeAllConnections();
  gateway.close();
  await rm(folder, { recursive: true, force: true });
});

describe('a remote node', () => {
  test('serves agent and reviewer behind a path and a token, and on a socket; commands get no secret', async () => {
    const file = join(folder, 'token');
    await writeFile(file, `${token}\n`);
    const name = uniquePrefix().replace(/\W+$/, '');
    const agent = await stdioAgent(folder, ['--data', data, '--session', name, '--allow-bash'], {
      XTDB_URL: url,
      XTDB_TOKEN: token,
      PALIMPSEST_PROFILE: 'postgres',
      PALIMPSEST_LOG: 'postgresql://u:pass-in-log@h/d',
      PALIMPSEST_DOCUMENTS: 'postgresql://u:pass-in-documents@h/d',
      PALIMPSEST_DATABASE_PASSWORD: 'pass-in-variable',
    });
    const said = await agent.call('bash', { command: 'env' });
    expect(said.text).toContain(`XTDB_URL=${url}`);
    for (const secret of [token, 'pass-in-']) expect(said.text).not.toContain(secret);
    await agent.close();
    for (const env of [{ XTDB_URL: `${url}/`, XTDB_TOKEN_FILE: file }, { XTDB_URL: `unix:${socketPath}` }]) {
      const { code, stdout } = await runCli(['log', name, '--data', data, '--json'], env);
      expect([code, JSON.parse(stdout)]).toMatchObject([0, { turns: [{ calls: [{ tool: 'bash' }] }] }]);
    }
  });

  test('refuses another token with a remedy; no token is printed', async () => {
    const { code, stdout, stderr } = await runCli(['sessions', '--data', data], {
      XTDB_URL: url,
      XTDB_TOKEN: 'no-good-secret',
    });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/401.*token/);
    expect(stderr).not.toMatch(/no-good-secret|first-token/);
  });

  test('gets a new token as soon as the old one is refused', async () => {
    const client = new XtdbClient(async () => ({ ...parseNodeUrl(url), token }));
    try {
      expect((await client.status()).version).toBe('1.24.3');
      token = 'second-token';
      const { outcome } = await client.execute([{ op: 'put', doc: { 'xt/id': `${uniquePrefix()}renewed` } }]);
      expect(outcome).toBe('committed');
    } finally {
      await client.close();
      token = 'first-token';
    }
  });
});

import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { httpAgent, startServe } from '../../support/mcp-clients.js';
import { servedFolders } from '../../support/served-folders.js';

const served = servedFolders({ folders: [{ 'a.txt': 'alpha\n' }] });
const { serve } = served;

const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const bearer = (): Record<string, string> => ({ authorization: `Bearer ${serve.token}` });
const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
});

const send = (body: string, headers: Record<string, string> = {}, method = 'POST') =>
  fetch(serve.url, { method, headers: { ...json, ...bearer(), ...headers }, ...(method === 'POST' ? { body } : {}) });

describe('palimpsest serve', () => {
  test('gives concurrent agents separate, isolated sessions', async () => {
    const [one, two] = await Promise.all([httpAgent(serve), httpAgent(serve)]);
    try {
      const [read, listed] = await Promise.all([one.call('read', { path: 'a.txt' }), two.call('ls')]);
      expect(read.text).toMatch(/\nalpha\n$/);
      expect(read.meta.session).not.toBe(listed.meta.session);
      expect((await one.call('context')).text).toContain('tool=read');
      expect((await two.call('context')).text).not.toContain('tool=read');
    } finally {
      await Promise.all([one.close(), two.close()]);
    }
  });

  test('shares a session between two connections that name it', async () => {
    const [one, two] = await Promise.all([httpAgent(serve), httpAgent(serve)]);
    const session = `shared-${process.pid}`;
    await Promise.all([one.call('ls', { session }), two.call('read', { path: 'a.txt', session })]);
    await one.close();
    expect((await two.call('context', { session })).text).toMatch(new RegExp(`session=${session} turn=1 known=3 `));
    await two.close();
  });

  test('listens on the loopback address and requires its token', async () => {
    expect(serve.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    expect(serve.token).toMatch(/^[\w-]{32}$/);
    const refused = await fetch(serve.url, { method: 'POST', headers: json, body: INITIALIZE });
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toBe('Bearer');
    expect((await send(INITIALIZE, { authorization: 'Bearer wrong' })).status).toBe(401);
    expect((await send(INITIALIZE, { origin: 'https://evil.example.com' })).status).toBe(403);
  });

  test('knows only its own sessions: 400 without one, 404 for an unknown or ended one', async () => {
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'ping' });
    expect((await send(ping)).status).toBe(400);
    expect((await send('', {}, 'GET')).status).toBe(400);
    expect((await send(ping, { 'mcp-session-id': 'none-such' })).status).toBe(404);
    const begun = await send(INITIALIZE);
    const id = begun.headers.get('mcp-session-id') ?? '';
    await begun.text();
    expect(begun.status).toBe(200);
    expect((await send(ping, { 'mcp-session-id': id })).status).toBe(200);
    expect((await send('', { 'mcp-session-id': id }, 'DELETE')).status).toBe(200);
    expect((await send(ping, { 'mcp-session-id': id })).status).toBe(404);
  });

  test('refuses other paths, other methods and broken bodies', async () => {
    expect((await fetch(new URL('/', serve.url), { headers: bearer() })).status).toBe(404);
    expect((await send('', {}, 'PUT')).status).toBe(405);
    expect((await send('{"jsonrpc":')).status).toBe(400);
  });

  test('treats null arguments as omitted, and refuses wrong parameters in a sentence', async () => {
    const agent = await httpAgent(serve);
    try {
      const headers = { 'mcp-session-id': String((agent.transport as StreamableHTTPClientTransport).sessionId) };
      const answerTo = async (params: object): Promise<unknown> => {
        const answer = await (
          await send(JSON.stringify({ jsonrpc: '2.0', id: 'n', method: 'tools/call', params }), headers)
        ).text();
        return JSON.parse(/^data: (.*"n".*)$/m.exec(answer)?.[1] ?? answer);
      };
      expect(await answerTo({ name: 'context', arguments: null })).toMatchObject({
        id: 'n',
        result: { content: [{ type: 'text' }] },
      });
      expect(await answerTo({ arguments: {} })).toMatchObject({
        id: 'n',
        error: { code: -32_602, message: expect.stringContaining('params.name: expected string, received undefined') },
      });
    } finally {
      await agent.close();
    }
  });

  test('refuses requests nested deeper than 512 levels, records nothing, and keeps the connection', async () => {
    const agent = await httpAgent(serve);
    try {
      const headers = { 'mcp-session-id': String((agent.transport as StreamableHTTPClientTransport).sessionId) };
      for (const levels of [600, 100_000]) {
        const deep = `${'['.repeat(levels)}${']'.repeat(levels)}`;
        const params = `{"name":"ls","arguments":{"deep":${deep}}}`;
        const call = `{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":${params}}`;
        const answer = await (await send(call, headers)).text();
        expect(JSON.parse(/^data: (.*"deep".*)$/m.exec(answer)?.[1] ?? answer)).toEqual({
          jsonrpc: '2.0',
          id: 'deep',
          error: { code: -32_600, message: expect.stringContaining('deeper than 512 levels') },
        });
      }
      expect((await agent.call('context')).text).not.toContain('tool=ls');
    } finally {
      await agent.close();
    }
  });
});

test.each(['SIGTERM', 'SIGINT'] as const)('exits normally on %s while it writes a file', async (signal) => {
  // An atomic write uses this library to listen for signals, to remove its temporary file.
  const library = createRequire(createRequire(import.meta.url).resolve('write-file-atomic')).resolve('signal-exit');
  const writing = join(served.root, 'writing.mjs');
  await writeFile(
    writing,
    `import exits from ${JSON.stringify(library)};
process.on('newListener', function begin(event) {
  if (event !== '${signal}') return;
  process.off('newListener', begin);
  setImmediate(() => exits.onExit(() => undefined));
});`,
  );
  const own = await startServe([], served.root, { NODE_OPTIONS: `--import=${writing}` });
  expect(await own.close(signal)).toBe(0);
});

describe('the token of palimpsest serve', () => {
  test('may come from a file, and is then not shown', async () => {
    const file = join(served.root, 'token');
    await writeFile(file, 'a-token-of-my-own-choice\n');
    const own = await startServe(['--token-file', file], served.root);
    try {
      expect(own.token).toBeUndefined();
      const agent = await httpAgent({ url: own.url, token: 'a-token-of-my-own-choice' });
      expect((await agent.call('ls')).isError).toBe(false);
      await agent.close();
    } finally {
      await own.close();
    }
  });

  test('is refused if it is too short', async () => {
    const file = join(served.root, 'short');
    await writeFile(file, 'short\n');
    await expect(startServe(['--token-file', file], served.root)).rejects.toThrow(
      /must be 16 or more printable characters/,
    );
  });
});

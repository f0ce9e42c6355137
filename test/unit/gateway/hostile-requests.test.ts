import { readdir, readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from '@jest/globals';
import { upstreamBases } from '../../../src/gateway/bases.js';
import { gatewayFolder } from '../../../src/gateway/gateway-log.js';
import { type ObservedGateway, observe } from '../../support/observed-gateway.js';
import { until } from '../../support/until.js';
import type { Answering } from '../../support/wire-ends.js';

let gateway: ObservedGateway;
let isClosed = false;
const begin = async (answer: Answering): Promise<void> => {
  isClosed = false;
  gateway = await observe(answer);
};
afterEach(async () => {
  if (!isClosed) await gateway.close();
});

const onlyLogged = async () => (await until(gateway.logged, ({ length }) => length > 0))[0];

async function logText(): Promise<string> {
  const folder = gatewayFolder(gateway.dataDir);
  const texts = (await readdir(folder)).map((name) => readFile(join(folder, name), 'latin1'));
  return (await Promise.all(texts)).join('');
}

/** Sends bytes and returns the socket with what it received. */
function sendBytes(text: string): { readonly socket: Socket; readonly received: () => string } {
  const socket = connect(Number(new URL(gateway.address).port), '127.0.0.1');
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.write(text);
  return { socket, received: () => received };
}

describe('the gateway', () => {
  test.each([
    '/gemini/v1beta/models/g:generateContent#key=SECRET-VALUE',
    '/gemini/v1beta/models/g:generateContent?alt=sse#key=SECRET-VALUE',
    '/gemini/v1beta/models/g:generateContent?alt=sse;key=SECRET-VALUE',
    '/gemini/v1beta/models/g:generateContent?alt=sse%26key=SECRET-VALUE',
    '/gemini/v1beta/models/g:generateContent?key=SECRET-VALUE&alt=sse',
  ])('never logs the key in %s', async (path) => {
    await begin((response) => response.end('{}'));
    await gateway.send('', { path, body: '{"contents":[]}' });
    expect((await onlyLogged())?.path).toMatch(/^\/v1beta\/models\/g:generateContent(?:\?alt=sse)?$/);
    expect(await logText()).not.toContain('SECRET');
  });

  test.each([
    ['x-api-key', 'SECRET-VALUE', '/anthropic/v1/messages'],
    ['Authorization', 'Bearer SECRET-VALUE', '/openai/v1/responses'],
    ['Cookie', 'a=1; session=SECRET-VALUE', '/openai/v1/chat/completions'],
    ['X-Other', 'none', '/gemini/v1beta/models/g:generateContent?key=SECRET%2DVALUE'],
  ])('logs an error that repeats a credential without it: %s %s', async (name, value, path) => {
    const message = `${'no '.repeat(160)}such key: SECRET-VALUE${' SECRET-VALUE'.repeat(9)}`;
    await begin((response) => {
      response.writeHead(401);
      response.end(JSON.stringify({ error: { type: 'authentication_error', message } }));
    });
    const answer = await gateway.send(path, { headers: [name, value], body: '{}' });
    expect(answer.body.toString()).toContain('SECRET-VALUE');
    expect((await onlyLogged())?.answer?.error?.message).toContain('such key: [cr');
    expect(await logText()).not.toContain('SECRET');
  });

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])('logs an answer whose %s body has bytes after its end', async (encoding, compress) => {
    await begin((response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding });
      // The rest comes after the decoder has ended.
      response.write(compress('{"id":"msg_1","content":[]}'));
      setImmediate(() => response.end('bytes that are not part of it'));
    });
    await gateway.send('/anthropic/v1/messages', { body: '{"messages":[]}' });
    expect((await onlyLogged())?.answer).toMatchObject({ status: 200, id: 'msg_1' });
  });

  test('forwards a body whose length Connection names, as a body', async () => {
    await begin((response) => response.end('ok'));
    const body = 'POST /v1/smuggled HTTP/1.1\r\nHost: a\r\n\r\n';
    await gateway.send('/openai/v1/models', {
      method: 'GET',
      headers: ['Connection', 'content-length, close', 'Content-Length', String(body.length)],
      body,
    });
    expect(gateway.upstream.received.map(({ start, body }) => [start, body.toString()])).toEqual([
      ['GET /v1/models', body],
    ]);
  });

  test('forwards and logs a model call that offers another protocol than WebSocket', async () => {
    await begin((response) => response.end('{"id":"msg_1"}'));
    const body = '{"messages":[]}';
    const { received, socket } = sendBytes(
      'POST /anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\n' +
        `Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect((await onlyLogged())?.answer).toMatchObject({ status: 200, id: 'msg_1' });
    expect(gateway.upstream.received[0]?.body.toString()).toBe(body);
    expect(await until(received, (text) => text.includes('msg_1'))).toMatch(/^HTTP\/1\.1 200 OK/);
    socket.destroy();
  });

  test('reports to a WebSocket that it cannot reach the upstream', async () => {
    await begin((response) => response.end('no'));
    await gateway.upstream.close();
    const { received } = sendBytes(
      'GET /openai/v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    );
    expect(await until(received, (text) => text.includes('cannot reach'))).toMatch(/^HTTP\/1\.1 502 Bad Gateway/);
  });

  test('ends while a WebSocket is open', async () => {
    await begin((response) => response.end('no'));
    const { received, socket } = sendBytes(
      'GET /openai/v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    );
    await until(received, (text) => text.startsWith('HTTP/1.1 101'));
    const gone = new Promise((resolve) => socket.once('close', resolve));
    await gateway.close();
    isClosed = true;
    await gone;
  });
});

describe('the base address of an upstream', () => {
  test.each([
    'anthropic=https://ann:SECRET@api.example.com',
    'anthropic=https://:SECRET@api.example.com',
    'anthropic=https://api.example.com/?key=SECRET',
    'anthropic=https://api.example.com/#SECRET',
    'anthropic=SECRET',
    'https://ann:SECRET@api.example.com',
    'other=https://ann:SECRET@api.example.com',
  ])('is refused with a credential and not repeated: %s', (pair) => {
    let refusal: unknown;
    try {
      upstreamBases([pair]);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toMatchObject({ code: 'bad-upstream' });
    expect(String(refusal)).not.toContain('SECRET');
  });
});

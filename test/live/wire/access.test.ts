import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CONFIGS, privateFolder, type RunningFront, startFront } from '../../support/front-process.js';
import { EDN, readEdn, Wire } from '../../support/wire.js';

const TOKEN = 'correct-horse-battery-staple';

let front: RunningFront;
let origin: string;
let host: string;
let open: Wire;
let anonymous: Wire;
let remove: () => Promise<void>;

beforeAll(async () => {
  const folder = await privateFolder();
  remove = folder.remove;
  const tokenFile = join(folder.dir, 'token');
  await writeFile(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
  front = await startFront(['--config', CONFIGS.memory, '--port', '0', '--token-file', tokenFile, '--read-only']);
  host = `127.0.0.1:${front.ready.port}`;
  origin = `http://${host}`;
  open = new Wire({ origin }, { headers: { authorization: `Bearer ${TOKEN}` } });
  anonymous = new Wire({ origin });
});
afterAll(async () => {
  await Promise.all([open.close(), anonymous.close()]);
  await front.stop();
  await remove();
});

/** Sends a head that announces a body which never comes. Returns the status line. */
function statusBeforeBody(head: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(front.ready.port), '127.0.0.1', () => socket.write(`${head.join('\r\n')}\r\n\r\n`));
    let text = '';
    socket.setEncoding('utf8');
    socket.on('error', reject);
    socket.on('data', (piece: string) => {
      text += piece;
      if (text.includes('\r\n')) {
        resolve(text.split('\r\n')[0] ?? '');
        socket.destroy();
      }
    });
  });
}

describe('TCP with a token', () => {
  test('listens on the loopback address only and reports it', () => {
    expect(front.ready).toMatchObject({ ready: true, socket: null, port: expect.any(Number), version: '1.24.3' });
  });

  test('serves clients with the token', async () => {
    expect((await open.get('/status')).status).toBe(200);
    expect((await open.get('/status', { headers: { host: `localhost:${front.ready.port}` } })).status).toBe(200);
  });

  test.each([
    ['no token', undefined],
    ['another token', 'Bearer wrong'],
    ['an empty token', 'Bearer '],
    ['the token with a tail', `Bearer ${TOKEN}x`],
    ['half the token', `Bearer ${TOKEN.slice(0, 10)}`],
    ['the token by another scheme', `Basic ${TOKEN}`],
  ])('refuses %s on every path, known or not', async (_name, authorization) => {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    for (const path of ['/status', '/query', '/nothing-here', '']) {
      const answer = await anonymous.get(path, { headers });
      expect([path, answer.status, answer.headers['www-authenticate']]).toEqual([path, 401, 'Bearer']);
    }
    expect((await anonymous.post('/submit-tx', '{:tx-ops []}', { headers })).status).toBe(401);
  });

  test('refuses before it waits or reads: no body, no await', async () => {
    // An hour, which is never waited here.
    const params = { 'await-tx-id': 99_999_999, 'await-tx-timeout': 3_600_000 };
    expect((await anonymous.get('/latest-completed-tx', { params })).status).toBe(401);
    const head = [
      'POST /_xtdb/submit-tx HTTP/1.1',
      `Host: ${host}`,
      `Content-Type: ${EDN}`,
      'Content-Length: 50000000',
    ];
    expect(await statusBeforeBody(head)).toBe('HTTP/1.1 401 Unauthorized');
  });

  test.each([
    'evil.example',
    'evil.example:80',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    '10.0.0.1',
    '169.254.169.254',
  ])('refuses the Host %s, token or not', async (foreign) => {
    expect((await open.get('/status', { headers: { host: foreign } })).status).toBe(403);
    expect((await anonymous.get('/status', { headers: { host: foreign } })).status).toBe(403);
  });

  test('refuses transactions read-only in the words that XTDB’s client knows, before it reads them', async () => {
    const answer = await open.post('/submit-tx', '{:tx-ops [[:xtdb.api/put {:xt/id 1}]]}');
    expect([answer.status, answer.text]).toEqual([403, 'forbidden: read-only HTTP node']);
    expect((await open.post('/submit-tx', '{cut off')).status).toBe(403);
    expect((await open.get('/latest-submitted-tx')).status).toBe(404);
    expect(readEdn((await open.get('/latest-completed-tx')).text)).toEqual({ error: 'No latest-completed-tx found.' });
  });

  test('does not stop on a request, because it was started without that', async () => {
    expect((await anonymous.post('/stop', '')).status).toBe(401);
    const answer = await open.post('/stop', '');
    expect([answer.status, answer.text]).toEqual([403, 'forbidden: this node is stopped by a signal']);
    expect((await open.get('/status')).status).toBe(200);
  });

  test('logs nothing of the token', async () => {
    const { stdout, stderr } = await front.stop();
    expect(stdout + stderr).not.toContain(TOKEN);
  });
});

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createLog } from '../../../src/host/log.js';
import type { ApiRoutes } from '../../../src/http/api-routes.js';
import { type HttpServer, startHttpServer } from '../../../src/http/http-server.js';
import { ReviewPage } from '../../../src/page/server/review-page.js';

interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

const TOKEN = 'token-of-the-server';
const connect = (): never => {
  throw new Error('nobody connects');
};

/** Routes that answer with the request's method. Access is decided before they run. */
const routes: ApiRoutes = {
  owns: ({ url = '' }) => url.startsWith('/v1'),
  refuse: (response, { status }) => void response.writeHead(status).end(),
  handle: async ({ method }, response) => void response.writeHead(200).end(method),
  forgetIdle: async () => undefined,
  close: async () => undefined,
};

describe('access to the review page', () => {
  let folder: string;
  let page: ReviewPage;
  let server: HttpServer;

  const send = (
    path: string,
    { method = 'GET', headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: unknown } = {},
  ) =>
    new Promise<Got>((resolve, reject) => {
      const sent = request(
        new URL(path, server.url),
        { method, headers: { 'content-type': 'application/json', ...headers } },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk) => {
            text += chunk;
          });
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
          );
        },
      );
      sent.once('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
    });
  const tokenOf = (link: string): string => new URLSearchParams(new URL(link).hash.slice(1)).get('token') ?? '';
  const enter = (token: string, headers = {}) => send('/review/enter', { method: 'POST', body: { token }, headers });
  const secretOf = ({ body }: Got): string => (JSON.parse(body) as { secret: string }).secret;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'palimpsest-page-'));
    await mkdir(join(folder, 'web', 'assets'), { recursive: true });
    await writeFile(join(folder, 'web', 'index.html'), '<!doctype html>');
    await writeFile(join(folder, 'web', 'assets', 'a.js'), '1');
    await writeFile(join(folder, 'secret.js'), 'no');
    page = new ReviewPage(join(folder, 'web'), TOKEN, '/data/of mine');
    server = await startHttpServer({
      port: 0,
      token: TOKEN,
      connect,
      log: createLog('silent'),
      routes,
      page,
    });
  });
  afterAll(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('lets visitors in by the printed link, more than once, and only to read', async () => {
    const link = page.link(new URL(server.url).origin, 'strip?session=S');
    expect(link).toMatch(/\/review\/strip\?session=S#token=[\w-]{32}$/);
    const first = await enter(tokenOf(link));
    expect([first.status, first.headers['cache-control'], first.headers['set-cookie']]).toEqual([
      200,
      'no-store',
      undefined,
    ]);
    expect((await enter(tokenOf(link))).status).toBe(200);
    expect((await enter(`${tokenOf(link)}x`)).status).toBe(401);
    expect(JSON.parse(first.body)).toMatchObject({ data: '/data/of mine' });
    const authorization = `Bearer ${secretOf(first)}`;
    expect(await send('/v1/log', { headers: { authorization } })).toMatchObject({ status: 200, body: 'GET' });
    expect((await send('/v1/sessions', { method: 'POST', headers: { authorization }, body: {} })).status).toBe(401);
    expect((await send('/mcp', { method: 'POST', headers: { authorization }, body: {} })).status).toBe(401);
  });

  test('lets a visitor change sets, undo, fork, restore and note, only from the page’s own origin', async () => {
    const authorization = `Bearer ${secretOf(await enter(TOKEN))}`;
    const { origin, port } = new URL(server.url);
    const post = async (path: string, headers: Record<string, string>) =>
      (await send(path, { method: 'POST', headers: { authorization, ...headers }, body: {} })).status;
    for (const what of ['sets', 'undo', 'fork', 'restore', 'notes']) {
      expect([what, await post(`/v1/sessions/a%2Fb/${what}`, { origin })]).toEqual([what, 200]);
      expect([what, await post(`/v1/sessions/a/${what}`, {})]).toEqual([what, 401]);
      // Another page of this machine has another port or another name for the machine.
      expect([what, await post(`/v1/sessions/a/${what}`, { origin: 'http://127.0.0.1:1' })]).toEqual([what, 401]);
      expect([what, await post(`/v1/sessions/a/${what}`, { origin: `http://localhost:${port}` })]).toEqual([what, 401]);
      expect([what, await post(`/v1/sessions/a/${what}`, { origin, authorization: 'Bearer other' })]).toEqual([
        what,
        401,
      ]);
    }
    for (const what of ['messages', 'tool-calls', 'context', 'activate', 'close', 'sets/more', 'system-prompt']) {
      expect([what, await post(`/v1/sessions/a/${what}`, { origin })]).toEqual([what, 401]);
    }
  });

  test('opens the page with the server’s token repeatedly, and not with another token', async () => {
    expect((await enter(TOKEN)).status).toBe(200);
    expect((await enter(TOKEN)).status).toBe(200);
    expect((await enter('wrong')).status).toBe(401);
    expect((await send('/v1/log', { headers: { authorization: 'Bearer wrong' } })).status).toBe(401);
    expect((await send('/review/enter', { method: 'POST', body: { token: TOKEN, more: 1 } })).status).toBe(400);
    expect((await send('/review/enter')).status).toBe(405);
  });

  test.each([
    ['/review/', { host: 'evil.example.com' }],
    ['/review/', { origin: 'https://evil.example.com' }],
    ['/review/enter', { origin: 'https://evil.example.com' }],
  ])('refuses %s with %j, and the token stays valid', async (path, headers) => {
    const link = page.link(new URL(server.url).origin);
    const refused = path.endsWith('enter') ? await enter(tokenOf(link), headers) : await send(path, { headers });
    expect([refused.status, refused.headers['content-type']]).toEqual([403, 'application/problem+json']);
    expect((await enter(tokenOf(link))).status).toBe(200);
  });

  test('serves the page for every view without a token, and runs only its own files', async () => {
    for (const path of ['/review', '/review/', '/review/strip?session=S']) {
      const { status, headers, body } = await send(path);
      expect([status, body]).toEqual([200, '<!doctype html>']);
      const policy = String(headers['content-security-policy']);
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
      expect(policy).toContain("require-trusted-types-for 'script'; trusted-types 'none'");
      expect(policy).not.toMatch(/unsafe|\*/);
    }
    expect(await send('/review/assets/a.js')).toMatchObject({ status: 200, body: '1' });
  });

  test.each([
    '/review/assets/../../secret.js',
    '/review/assets/..%2f..%2fsecret.js',
    '/review/assets/none.js',
    '/review/assets/',
  ])('serves no file but those of the page: %s', async (path) => {
    const { status, body } = await send(path);
    expect(body).not.toBe('no');
    expect(path.includes('/../') ? [401, 404] : [404]).toContain(status);
  });

  test('explains how to build a missing page', async () => {
    const unbuilt = new ReviewPage(join(folder, 'nowhere'), TOKEN);
    const other = await startHttpServer({
      port: 0,
      token: TOKEN,
      connect,
      log: createLog('silent'),
      routes,
      page: unbuilt,
    });
    try {
      const answer = await fetch(new URL('/review/', other.url));
      expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('npm run build')]);
    } finally {
      await other.close();
    }
  });
});

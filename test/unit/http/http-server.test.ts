import { get } from 'node:http';
import { describe, expect, test } from '@jest/globals';
import { createLog, type Logger } from '../../../src/host/log.js';
import type { ApiRoutes } from '../../../src/http/api-routes.js';
import { startHttpServer } from '../../../src/http/http-server.js';
import { refusal } from '../../../src/http/request-checks.js';

const silent = (): Logger => createLog('silent');
const connect = (): never => {
  throw new Error('nobody connects');
};

test.each(['//', '//host/mcp', '/mcp/', '/%zz', '/mc%70'])(
  'returns not found for an address such as %s, without a server error',
  async (path) => {
    let troubled = false;
    const log = silent();
    log.error = () => {
      troubled = true;
    };
    const server = await startHttpServer({ port: 0, token: undefined, connect, log });
    try {
      const { port } = new URL(server.url);
      const status = await new Promise((resolve, reject) => {
        get({ host: '127.0.0.1', port, path }, (response) => resolve(response.resume().statusCode)).once(
          'error',
          reject,
        );
      });
      expect(status).toBe(404);
      expect(troubled).toBe(false);
    } finally {
      await server.close();
    }
  },
);

test('survives an idle session that fails to close', async () => {
  let warned: (message: unknown) => void = () => undefined;
  const warning = new Promise<unknown>((resolve) => {
    warned = resolve;
  });
  const log = silent();
  log.warn = (_fields: unknown, message?: unknown) => warned(message);
  const routes: ApiRoutes = {
    owns: () => false,
    refuse: () => undefined,
    handle: async () => undefined,
    forgetIdle: async () => {
      throw new Error('the session was closed meanwhile');
    },
    close: async () => undefined,
  };
  const server = await startHttpServer({ port: 0, token: undefined, connect, log, routes, idleMs: 5 });
  try {
    expect(await warning).toContain('idle');
  } finally {
    await server.close();
  }
});

const TOKEN = 'correct-horse-battery';
const good = { host: '127.0.0.1:7390', authorization: `Bearer ${TOKEN}` };

describe('requests to the HTTP server (decision H6)', () => {
  test.each([['127.0.0.1:7390'], ['127.0.0.1'], ['localhost:80'], ['LOCALHOST'], ['[::1]:7390']])(
    'are accepted from this machine: Host %s',
    (host) => {
      expect(refusal({ headers: { ...good, host } }, TOKEN)).toBeUndefined();
    },
  );

  test.each([
    ['evil.example.com'],
    ['127.0.0.1.evil.example.com'],
    ['localhost@evil.example.com'],
    ['0.0.0.0:7390'],
    [''],
    ['not a host'],
    [undefined],
  ])('are refused with the Host %s', (host) => {
    expect(refusal({ headers: { ...good, host } }, TOKEN)?.status).toBe(403);
  });

  test('are refused with two Hosts, whichever comes first', () => {
    const headersDistinct = { host: ['127.0.0.1:7390', 'evil.example.com'] };
    expect(refusal({ headers: good, headersDistinct }, TOKEN)?.status).toBe(403);
  });

  test.each([['https://evil.example.com'], ['null'], ['http://localhost.evil.example.com'], ['file://']])(
    'are refused with the Origin %s',
    (origin) => {
      expect(refusal({ headers: { ...good, origin } }, TOKEN)?.status).toBe(403);
    },
  );

  test('are accepted from a page of this machine', () => {
    expect(refusal({ headers: { ...good, origin: 'http://localhost:6274' } }, TOKEN)).toBeUndefined();
  });

  test.each([
    ['POST', undefined, 403],
    ['POST', 'text/plain', 403],
    ['POST', 'application/x-www-form-urlencoded; charset=utf-8', 403],
    ['POST', 'application/json', undefined],
    ['GET', undefined, undefined],
  ])("are refused as a %s of another server's page without a preflight: %s", (method, type, status) => {
    const from = (origin: string | undefined) => {
      const headers = {
        ...good,
        ...(origin === undefined ? {} : { origin }),
        ...(type === undefined ? {} : { 'content-type': type }),
      };
      return refusal({ method, headers }, undefined)?.status;
    };
    expect(from('http://localhost:3000')).toBe(status);
    expect(from(`http://${good.host}`)).toBeUndefined();
    expect(from(undefined)).toBeUndefined();
  });

  test.each([[undefined], ['Bearer wrong'], [`Basic ${TOKEN}`], [TOKEN], [`Bearer ${TOKEN}x`], ['Bearer ']])(
    'require the token: %s',
    (authorization) => {
      expect(refusal({ headers: { ...good, authorization } }, TOKEN)?.status).toBe(401);
    },
  );

  test('require no token by default', () => {
    expect(refusal({ headers: { host: 'localhost' } }, undefined)).toBeUndefined();
  });
});

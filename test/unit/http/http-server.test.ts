import { get } from 'node:http';
import { expect, test } from '@jest/globals';
import { createLog, type Logger } from '../../../src/host/log.js';
import type { HarnessRoutes } from '../../../src/http/harness-routes.js';
import { startHttpServer } from '../../../src/http/http-server.js';

const silent = (): Logger => createLog('silent');
const connect = (): never => {
  throw new Error('nobody connects');
};

test.each(['//', '//host/mcp', '/mcp/', '/%zz', '/mc%70'])(
  'an address such as %s is not found, which is no trouble of the server',
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
        get({ host: '127.0.0.1', port, path }, (response) => resolve(response.resume().statusCode)).once('error', reject);
      });
      expect(status).toBe(404);
      expect(troubled).toBe(false);
    } finally {
      await server.close();
    }
  },
);

test('a session that cannot be let go of when it is idle does not take the server with it', async () => {
  let warned: (message: unknown) => void = () => undefined;
  const warning = new Promise<unknown>((resolve) => {
    warned = resolve;
  });
  const log = silent();
  log.warn = (_fields: unknown, message?: unknown) => warned(message);
  const routes: HarnessRoutes = {
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

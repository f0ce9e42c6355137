import { expect, test } from '@jest/globals';
import type { HarnessRoutes } from '../../../src/http/harness-routes.js';
import { startHttpServer } from '../../../src/http/http-server.js';
import { createLog, type Logger } from '../../../src/mcp/log.js';

test('a session that cannot be let go of when it is idle does not take the server with it', async () => {
  let warned: (message: unknown) => void = () => undefined;
  const warning = new Promise<unknown>((resolve) => {
    warned = resolve;
  });
  const log: Logger = createLog('silent');
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
  const connect = (): never => {
    throw new Error('nobody connects');
  };
  const server = await startHttpServer({ port: 0, token: undefined, connect, log, routes, idleMs: 5 });
  try {
    expect(await warning).toContain('idle');
  } finally {
    await server.close();
  }
});

import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Backend } from '../host/backend.js';
import { createLog, type LogLevel } from '../host/log.js';
import type { ServerSettings } from '../host/server-settings.js';
import { openConnection } from '../mcp/connection.js';
import { harnessRoutes } from './harness-routes.js';
import { LONGEST_BODY_BYTES, startHttpServer } from './http-server.js';

/** What `serve` is told beside the settings of every server. */
export interface ServeOptions {
  readonly port: number;
  readonly logLevel: LogLevel;
  /** A file that holds the token; otherwise one is made up and shown once. */
  readonly tokenFile: string | undefined;
  /** Asks for no token at all. */
  readonly noToken: boolean;
}

const LAST_MS = 8_000;

async function tokenOf({ tokenFile, noToken }: ServeOptions): Promise<string | undefined> {
  if (noToken) return undefined;
  if (tokenFile === undefined) return randomBytes(24).toString('base64url');
  const token = (await readFile(tokenFile, 'utf8')).trim();
  if (!/^[\x21-\x7e]{16,}$/.test(token))
    throw new TypeError(`The token in ${JSON.stringify(tokenFile)} must be 16 or more printable characters without spaces.`);
  return token;
}

/** Serves several clients over HTTP on the loopback address until a signal comes (decision H6). */
export async function serveHttp(settings: ServerSettings, options: ServeOptions): Promise<void> {
  const log = createLog(options.logLevel);
  const token = await tokenOf(options);
  const backend = new Backend(settings, log);
  const routes = harnessRoutes(backend, settings, log, LONGEST_BODY_BYTES);
  const server = await startHttpServer({ port: options.port, token, log, routes, connect: () => openConnection(backend, settings, log) });
  const shown = token !== undefined && options.tokenFile === undefined ? `\nAuthorization: Bearer ${token}` : '';
  process.stderr.write(`Palimpsest listens on ${server.url}${shown}\n`);
  backend.warmUp();
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  });
  setTimeout(() => process.exit(1), LAST_MS).unref();
  await server.close();
  await backend.close();
}

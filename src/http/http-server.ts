import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Backend } from '../host/backend.js';
import { createLog, type LogLevel } from '../host/log.js';
import type { ServerSettings } from '../host/settings.js';
import { openConnection } from '../mcp/connection.js';
import { HttpEndpoint, type HttpEndpointOptions } from '../mcp/http-endpoint.js';
import { type HarnessRoutes, harnessRoutes } from './harness-routes.js';
import { refusal } from './request-checks.js';

/** How the HTTP server is made. */
export interface HttpServerOptions extends Omit<HttpEndpointOptions, 'mostBodyBytes'> {
  /** 0 picks a free one. */
  readonly port: number;
  /** The bearer token that every request must bring; undefined for none. */
  readonly token: string | undefined;
  /** The interface for harnesses below `/v1`; left out: there is none. */
  readonly routes?: HarnessRoutes;
  /** Milliseconds after which a client that does nothing is forgotten; an hour if left out. */
  readonly idleMs?: number;
}

/** A listening server. */
export interface HttpServer {
  readonly url: string;
  close(): Promise<void>;
}

/** What `serve` is given apart from the settings of every server. */
export interface ServeOptions {
  readonly port: number;
  readonly logLevel: LogLevel;
  /** A file that holds the token; otherwise one is made up and shown once. */
  readonly tokenFile: string | undefined;
  /** Asks for no token at all. */
  readonly noToken: boolean;
}

/** The longest body of a request. */
const MOST_BODY_BYTES = 64 * 1024 * 1024;
const HOUR_MS = 3_600_000;
/** How long closing may take before the process ends without it. */
const LAST_MS = 8_000;

/** Serves MCP at `/mcp` and, with `routes`, the interface for harnesses on the loopback address. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { connect, events, log, port, token, routes, idleMs = HOUR_MS } = options;
  const mcp = new HttpEndpoint({ connect, events, log, mostBodyBytes: MOST_BODY_BYTES });
  const server = createServer((request, response) => {
    const handler = routes?.owns(request) === true ? routes : mcp;
    const refused = refusal(request, token);
    if (refused === undefined) void handler.handle(request, response);
    else handler.refuse(response, refused);
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const forget = (): void => {
    Promise.all([mcp.forgetIdle(idleMs), routes?.forgetIdle(idleMs)]).catch((error: unknown) =>
      log.warn({ err: error }, 'idle clients could not be closed'),
    );
  };
  const sweep = setInterval(forget, Math.min(60_000, idleMs));
  sweep.unref();
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    clearInterval(sweep);
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await Promise.all([mcp.close(), routes?.close()]);
    server.closeAllConnections();
    await closed;
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

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
  const routes = harnessRoutes({ backend, settings, log, mostBodyBytes: MOST_BODY_BYTES });
  const connect = () => openConnection(backend, settings, log);
  const server = await startHttpServer({ port: options.port, token, log, routes, connect });
  const shown = token !== undefined && options.tokenFile === undefined ? `\nAuthorization: Bearer ${token}` : '';
  // Whoever reads the announcement may end the server at once. The listeners stay: a file that is just being written has one of its own, which ends the
  // process by the signal when it is the only one.
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve());
  });
  process.stderr.write(`Palimpsest listens on ${server.url}${shown}\n`);
  backend.warmUp();
  await stopped;
  setTimeout(() => process.exit(1), LAST_MS).unref();
  await server.close();
  await backend.close();
}

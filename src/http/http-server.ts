import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FindHiddenTexts } from '../history/rebuild/hidden-texts.js';
import { Backend } from '../host/backend.js';
import { createLog, type Logger, type LogLevel } from '../host/log.js';
import { type ServerSettings, UsageError } from '../host/settings.js';
import { openTelemetry } from '../host/telemetry.js';
import { openConnection } from '../mcp/connection.js';
import { HttpEndpoint, type HttpEndpointOptions } from '../mcp/http-endpoint.js';
import { systemCode } from '../process/system-error.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import { type ApiRoutes, apiRoutes } from './api-routes.js';
import type { HttpContract, ServedPage } from './http-contract.js';
import { refusal } from './request-checks.js';

/** Options of the HTTP server. */
export interface HttpServerOptions extends Omit<HttpEndpointOptions, 'mostBodyBytes'> {
  /** 0 picks a free port. */
  readonly port: number;
  /** The bearer token that every request must have; undefined for none. */
  readonly token: string | undefined;
  /** The interface below `/v1`; default: none. */
  readonly routes?: ApiRoutes;
  /** A page, whose visitors may send GET questions to `routes`; default: none. */
  readonly page?: ServedPage;
  /** Returns the response of `GET /metrics` in Prometheus format; default: no such path. */
  readonly metrics?: () => Promise<string>;
  /** Milliseconds after which an idle client is dropped; default: one hour. */
  readonly idleMs?: number;
}

/** A listening server. */
export interface HttpServer {
  readonly url: string;
  close(): Promise<void>;
}

/** The addresses of a server. */
export interface ServedAddresses {
  readonly mcp: string;
  /** The generated bearer token. Undefined if a file has the token, or there is no token. */
  readonly token: string | undefined;
  /** Returns the address of a view of the page, which works while the server runs. */
  readonly page?: (view?: string) => string;
}

/** Options of `serve` beyond the settings of every server. */
export interface ServeOptions {
  readonly port: number;
  readonly logLevel: LogLevel;
  /** A file with the token; by default a token is generated and shown once. */
  readonly tokenFile: string | undefined;
  /** Requires no token at all. */
  readonly noToken: boolean;
  /**
   * Whether the reader is the owner of the data folder, who may ask about every session and file.
   */
  readonly reviewsAll?: boolean;
  /** The folder for copies of files; default: the folders of `settings`. */
  readonly copiesBelow?: string;
  /** The contracts to serve beside the interface's own operations. */
  readonly contracts: readonly HttpContract[];
  /** Finds the texts that the redaction rules of a session hide. */
  readonly hiddenTexts: FindHiddenTexts;
  /** Called once the server listens. */
  readonly announce: (addresses: ServedAddresses) => void;
}

/** Maximum size of a request body. */
const MOST_BODY_BYTES = 64 * 1024 * 1024;
const HOUR_MS = 3_600_000;
/** Maximum time in milliseconds to close. After it, the process exits. */
const LAST_MS = 8_000;

/** Whether a request is a Prometheus scrape. */
const isScrape = ({ method, url = '/' }: IncomingMessage): boolean => method === 'GET' && /^\/metrics(\?|$)/.test(url);

/** Sends the metrics; never rejects. */
async function sendMetrics(
  response: ServerResponse,
  { metrics, log }: { readonly metrics: () => Promise<string>; readonly log: Logger },
): Promise<void> {
  try {
    const text = await metrics();
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
    response.end(text);
  } catch (error) {
    log.error({ err: error }, 'the metrics could not be read');
    response.writeHead(500).end();
  }
}

/** Serves MCP at `/mcp` and, with `routes`, the interface below `/v1`, on the loopback address. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { connect, events, log, port, token, routes, page, metrics, idleMs = HOUR_MS } = options;
  const mcp = new HttpEndpoint({ connect, events, log, mostBodyBytes: MOST_BODY_BYTES });
  const server = createServer((request, response) => {
    const ofPage = page?.owns(request) === true;
    const isQuestion = routes?.owns(request) === true;
    const handler = ofPage ? page : isQuestion ? routes : mcp;
    const needsNone = ofPage || (isQuestion && page?.admits(request) === true);
    const refused = refusal(request, needsNone ? undefined : token);
    if (refused === undefined && metrics !== undefined && isScrape(request))
      return void sendMetrics(response, { metrics, log });
    if (refused === undefined) void handler.handle(request, response);
    else handler.refuse(response, refused);
  });
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch (cause) {
    if (systemCode(cause) !== 'EADDRINUSE') throw cause;
    throw new Error(`Port ${port} is in use by another program: choose another one with --port, or 0 for a free one.`, {
      cause,
    });
  }
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

async function readToken(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw new UsageError(`The file ${file} (--token-file) cannot be read: ${messageOf(cause)}`, { cause });
  }
}

async function tokenOf({ tokenFile, noToken }: ServeOptions): Promise<string | undefined> {
  if (noToken) return undefined;
  if (tokenFile === undefined) return randomBytes(24).toString('base64url');
  const token = (await readToken(tokenFile)).trim();
  if (!/^[\x21-\x7e]{16,}$/.test(token))
    throw new TypeError(
      `The token in ${JSON.stringify(tokenFile)} must be 16 or more printable characters without spaces.`,
    );
  return token;
}

/** Serves several clients over HTTP on the loopback address until a signal (decision H6). */
export async function serveHttp(settings: ServerSettings, options: ServeOptions): Promise<void> {
  const log = createLog(options.logLevel);
  const token = await tokenOf(options);
  const { telemetry, prometheus, close } = await openTelemetry({
    log,
    env: settings.telemetry,
    version: settings.version,
    isScraped: true,
  });
  const backend = new Backend(settings, log, telemetry);
  const routes = apiRoutes({
    backend,
    settings,
    log,
    mostBodyBytes: MOST_BODY_BYTES,
    contracts: options.contracts,
    hiddenTexts: options.hiddenTexts,
    ...defined({ reviewsAll: options.reviewsAll, copiesBelow: options.copiesBelow }),
  });
  const page = options.contracts.find((contract) => contract.page !== undefined)?.page?.(token, settings.node.dataDir);
  const connect = () => openConnection(backend, settings, log);
  const server = await startHttpServer({
    port: options.port,
    token,
    log,
    routes,
    connect,
    ...defined({ page, metrics: prometheus }),
  });
  // Listens for signals before the announcement, because its reader may end the server at once.
  // Keeps the listeners: each file write has its own listener, which would end the process on the
  // signal if it were the only one.
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve());
  });
  options.announce({
    mcp: server.url,
    token: options.tokenFile === undefined ? token : undefined,
    ...(page === undefined ? {} : { page: (view) => page.link(new URL(server.url).origin, view) }),
  });
  backend.warmUp();
  await stopped;
  setTimeout(() => process.exit(1), LAST_MS).unref();
  await server.close();
  await backend.close();
  await close();
}

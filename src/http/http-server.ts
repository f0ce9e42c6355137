import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { type EventStore, StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Logger } from '../host/log.js';
import type { HarnessRoutes } from './harness-routes.js';
import { refusal } from './request-checks.js';

/** What serves one client. */
export interface ServedConnection {
  readonly server: Server;
  close(): Promise<void>;
}

/** How the HTTP server is made. */
export interface HttpServerOptions {
  /** 0 picks a free one. */
  readonly port: number;
  /** The bearer token that every request must bring; undefined for none. */
  readonly token: string | undefined;
  /** Makes a server for each client: sharing one would let clients see each other's answers. */
  readonly connect: () => ServedConnection;
  readonly log: Logger;
  /** The interface for harnesses beside MCP; left out: there is none. */
  readonly routes?: HarnessRoutes;
  /** Keeps messages for clients that reconnect; without it a broken stream loses what was under way. */
  readonly events?: () => EventStore;
  /** Milliseconds after which a client that does nothing is forgotten; an hour if left out. */
  readonly idleMs?: number;
}

/** A listening server. */
export interface HttpServer {
  readonly url: string;
  close(): Promise<void>;
}

interface Client {
  readonly transport: StreamableHTTPServerTransport;
  readonly connection: ServedConnection;
  lastUsed: number;
  /** Requests and streams that are open. */
  open: number;
}

const MOST_CLIENTS = 128;
/** The longest body of a request. */
export const LONGEST_BODY_BYTES = 64 * 1024 * 1024;
const HOUR_MS = 3_600_000;

function answer(
  response: ServerResponse,
  status: number,
  code: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
}

/** The clients of one server by their MCP session ids. */
class Clients {
  readonly #options: HttpServerOptions;
  readonly #byId = new Map<string, Client>();

  constructor(options: HttpServerOptions) {
    this.#options = options;
  }

  get(id: string): Client | undefined {
    return this.#byId.get(id);
  }

  get full(): boolean {
    return this.#byId.size >= MOST_CLIENTS;
  }

  /** Makes a client that becomes known once its `initialize` is accepted. */
  async make(): Promise<Client> {
    const { connect, events, log } = this.#options;
    const connection = connect();
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      maxRequestBodySize: LONGEST_BODY_BYTES,
      onsessioninitialized: (id) => void this.#byId.set(id, client),
      ...(events === undefined ? {} : { eventStore: events(), retryInterval: 500 }),
    });
    const client: Client = { transport, connection, lastUsed: Date.now(), open: 0 };
    transport.onclose = () => {
      if (transport.sessionId !== undefined) this.#byId.delete(transport.sessionId);
      connection.close().catch((error: unknown) => log.warn({ err: error }, 'a connection did not close cleanly'));
    };
    await connection.server.connect(transport as Parameters<Server['connect']>[0]);
    return client;
  }

  async handle(client: Client, request: IncomingMessage, response: ServerResponse): Promise<void> {
    client.open++;
    client.lastUsed = Date.now();
    response.once('close', () => {
      client.open--;
      client.lastUsed = Date.now();
    });
    await client.transport.handleRequest(request, response);
  }

  /** Ends the clients that have done nothing for long: one that vanished without a word must not hold its session for ever. */
  async forgetIdle(idleMs: number): Promise<void> {
    const now = Date.now();
    const idle = [...this.#byId.values()].filter(({ open, lastUsed }) => open === 0 && now - lastUsed > idleMs);
    await Promise.all(idle.map(({ transport }) => transport.close()));
  }

  async close(): Promise<void> {
    const clients = [...this.#byId.values()];
    await Promise.allSettled(clients.map(({ transport }) => transport.close()));
    await Promise.allSettled(clients.map(({ connection }) => connection.close()));
  }
}

async function route(clients: Clients, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path] = (request.url ?? '/').split('?');
  if (path !== '/mcp') return answer(response, 404, -32_000, 'Not found: the endpoint is /mcp');
  if (!['GET', 'POST', 'DELETE'].includes(request.method ?? '')) {
    return answer(response, 405, -32_000, 'Method not allowed', { allow: 'GET, POST, DELETE' });
  }
  const id = request.headers['mcp-session-id'];
  if (typeof id === 'string') {
    const client = clients.get(id);
    if (client === undefined) return answer(response, 404, -32_001, 'Session not found: begin again with initialize');
    return clients.handle(client, request, response);
  }
  if (request.method !== 'POST') return answer(response, 400, -32_000, 'Bad Request: the Mcp-Session-Id header is missing');
  if (clients.full) return answer(response, 503, -32_000, `Too many clients: ${MOST_CLIENTS} are connected`);
  const client = await clients.make();
  await clients.handle(client, request, response);
  // Whatever it sent, it was no initialize, and the transport has said so.
  if (client.transport.sessionId === undefined) await client.transport.close();
}

/** Serves MCP over streamable HTTP on the loopback address: several clients at once, each with a server of its own. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { log, port, token, routes, idleMs = HOUR_MS } = options;
  const clients = new Clients(options);
  const server = createServer((request, response) => {
    const refused = refusal(request, token);
    if (routes?.owns(request) === true) {
      if (refused === undefined) void routes.handle(request, response);
      else routes.refuse(response, refused);
      return;
    }
    if (refused !== undefined) {
      const headers = refused.status === 401 ? { 'www-authenticate': 'Bearer' } : {};
      return answer(response, refused.status, -32_000, refused.message, headers);
    }
    route(clients, request, response).catch((error: unknown) => {
      log.error({ err: error }, 'a request failed');
      if (response.headersSent) response.end();
      else answer(response, 500, -32_603, 'Internal error');
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const forget = (): void => {
    Promise.all([clients.forgetIdle(idleMs), routes?.forgetIdle(idleMs)]).catch((error: unknown) =>
      log.warn({ err: error }, 'what was idle could not be let go of'),
    );
  };
  const sweep = setInterval(forget, Math.min(60_000, idleMs));
  sweep.unref();
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    clearInterval(sweep);
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await Promise.all([clients.close(), routes?.close()]);
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

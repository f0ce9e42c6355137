import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { type EventStore, StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isJSONRPCRequest } from '@modelcontextprotocol/sdk/types.js';
import type { Logger } from '../host/log.js';
import { dropNullParams, tooDeep } from './check-message.js';
import type { Connection } from './connection.js';

/** How MCP is served over HTTP. */
export interface HttpEndpointOptions {
  /**
   * Creates a server for each client, because clients of a shared server would see each other's
   * answers.
   */
  readonly connect: () => Pick<Connection, 'server' | 'close'>;
  readonly log: Logger;
  /** Maximum size of a request body. */
  readonly mostBodyBytes: number;
  /**
   * Stores messages for clients that reconnect. Without it, a broken stream loses its running
   * requests.
   */
  readonly events?: (() => EventStore) | undefined;
}

interface Client {
  readonly transport: StreamableHTTPServerTransport;
  readonly connection: Pick<Connection, 'server' | 'close'>;
  lastUsed: number;
  /** Number of open requests and streams. */
  open: number;
}

/** A JSON-RPC error outside any call. */
interface Refused {
  readonly status: number;
  readonly code?: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const MOST_CLIENTS = 128;

function answer(response: ServerResponse, { status, code = -32_000, message, headers }: Refused): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
}

/**
 * Rejects messages that nest too deep before they reach the server, and removes null parameters.
 */
function checkMessages(transport: StreamableHTTPServerTransport, log: Logger): void {
  const receive = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const deep = tooDeep(message);
    if (deep === undefined) {
      dropNullParams(message);
      receive?.(message, extra);
    } else if (isJSONRPCRequest(message)) {
      transport
        .send({ jsonrpc: '2.0', id: message.id, error: deep })
        .catch((error: unknown) => log.debug({ err: error }, 'a refusal was not delivered'));
    }
  };
}

/**
 * MCP over streamable HTTP at `/mcp`. Serves several clients at once, by MCP session id, each with
 * a separate server.
 */
export class HttpEndpoint {
  readonly #options: HttpEndpointOptions;
  readonly #clients = new Map<string, Client>();

  constructor(options: HttpEndpointOptions) {
    this.#options = options;
  }

  /** Answers a request that the common checks rejected. */
  refuse(response: ServerResponse, { status, message }: { readonly status: number; readonly message: string }): void {
    answer(response, { status, message, headers: status === 401 ? { 'www-authenticate': 'Bearer' } : {} });
  }

  /** Answers a request. Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#route(request, response);
    } catch (error) {
      this.#options.log.error({ err: error }, 'a request failed');
      if (response.headersSent) response.end();
      else answer(response, { status: 500, code: -32_603, message: 'Internal error' });
    }
  }

  /**
   * Ends clients that were idle for this long. A client that vanished must not keep its session.
   */
  async forgetIdle(idleMs: number): Promise<void> {
    const now = Date.now();
    const idle = [...this.#clients.values()].filter(({ open, lastUsed }) => open === 0 && now - lastUsed > idleMs);
    await Promise.all(idle.map(({ transport }) => transport.close()));
  }

  /** Ends all clients. */
  async close(): Promise<void> {
    const clients = [...this.#clients.values()];
    await Promise.allSettled(clients.map(({ transport }) => transport.close()));
    await Promise.allSettled(clients.map(({ connection }) => connection.close()));
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path] = (request.url ?? '/').split('?');
    if (path !== '/mcp') return answer(response, { status: 404, message: 'Not found: the endpoint is /mcp' });
    if (!['GET', 'POST', 'DELETE'].includes(request.method ?? '')) {
      return answer(response, { status: 405, message: 'Method not allowed', headers: { allow: 'GET, POST, DELETE' } });
    }
    const id = request.headers['mcp-session-id'];
    if (typeof id === 'string') {
      const client = this.#clients.get(id);
      if (client !== undefined) return this.#pass(client, request, response);
      return answer(response, {
        status: 404,
        code: -32_001,
        message: 'Session not found: begin again with initialize',
      });
    }
    if (request.method !== 'POST') {
      return answer(response, { status: 400, message: 'Bad Request: the Mcp-Session-Id header is missing' });
    }
    if (this.#clients.size >= MOST_CLIENTS) {
      return answer(response, {
        status: 503,
        message: `Too many clients: ${MOST_CLIENTS} are connected; retry once one has left`,
      });
    }
    const client = await this.#connect();
    await this.#pass(client, request, response);
    // The request was not an initialize, and the transport has rejected it.
    if (client.transport.sessionId === undefined) await client.transport.close();
  }

  /** Creates a client. It is registered once its `initialize` is accepted. */
  async #connect(): Promise<Client> {
    const { connect, events, log, mostBodyBytes } = this.#options;
    const connection = connect();
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      maxRequestBodySize: mostBodyBytes,
      onsessioninitialized: (id) => void this.#clients.set(id, client),
      ...(events === undefined ? {} : { eventStore: events(), retryInterval: 500 }),
    });
    const client: Client = { transport, connection, lastUsed: Date.now(), open: 0 };
    transport.onclose = () => {
      if (transport.sessionId !== undefined) this.#clients.delete(transport.sessionId);
      connection.close().catch((error: unknown) => log.warn({ err: error }, 'a connection did not close cleanly'));
    };
    await connection.server.connect(transport as Parameters<Server['connect']>[0]);
    checkMessages(transport, log);
    return client;
  }

  async #pass(client: Client, request: IncomingMessage, response: ServerResponse): Promise<void> {
    client.open++;
    client.lastUsed = Date.now();
    response.once('close', () => {
      client.open--;
      client.lastUsed = Date.now();
    });
    await client.transport.handleRequest(request, response);
  }
}

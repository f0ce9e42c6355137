import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { refusal } from '../http/request-checks.js';
import { ClientConnections } from './client-connections.js';
import { forward, forwardUpgrade } from './forward.js';
import { GatewayError } from './gateway-error.js';
import type { GatewayLog } from './gateway-log.js';
import { headerOf, pairsOf } from './raw-headers.js';
import type { Steering } from './steer/steering.js';
import { VerbEndpoint } from './steer/verb-endpoint.js';
import { type Target, targetOf, wireOf } from './wires.js';

/** A running gateway. */
export interface Gateway {
  /** The address without a path. The first segment of a request's path names the upstream. */
  readonly address: string;
  /** The secret address for the tool calls of steered models. */
  readonly verbs?: string;
  /** Ends all connections and closes the log. Idempotent. */
  close(): Promise<void>;
}

/** The upstreams, log and port of a gateway. */
export interface GatewayOptions {
  readonly bases: ReadonlyMap<string, URL>;
  readonly log: GatewayLog;
  /** Changes the requests of sessions. Undefined if no byte may be changed. */
  readonly steering?: Steering;
  /**
   * Whether the gateway answers 426 to WebSockets for model calls. A client such as Codex then
   * sends the calls over HTTP, where the gateway sees them.
   */
  readonly isHttpOnly?: boolean;
  /** Called for each WebSocket for model calls that is forwarded unread. */
  readonly onPassed?: () => void;
  /** 0 picks a free port. */
  readonly port: number;
}

/** Exceeds the header size that the providers accept. */
const MOST_HEADER_BYTES = 256 * 1_024;

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ type: 'error', error: { type: 'palimpsest_gateway', message } }));
}

const refuseUpgrade = (socket: Duplex, status: string): void =>
  void socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);

/** Returns why a request is not forwarded. Undefined if it is. */
function faultOf(
  request: IncomingMessage,
  target: Target | undefined,
): { status: number; message: string } | undefined {
  const refused = refusal({ headers: request.headers, headersDistinct: request.headersDistinct }, undefined);
  if (refused !== undefined) return refused;
  if (target !== undefined) return undefined;
  const first = (request.url ?? '').split(/[?#]/, 1)[0]?.slice(0, 200) ?? '';
  return {
    status: 404,
    message: `${first} names no upstream. Begin the path with /anthropic, /openai, /codex or /gemini`,
  };
}

/**
 * Makes the server read an upgrade request again as an ordinary one, without its Upgrade header. A
 * server may ignore that header (RFC 9110, 7.8). Node.js passes on every upgrade request without
 * its body. That includes upgrades to HTTP/2, which we may ignore.
 */
function again(server: Server, request: IncomingMessage, rest: Buffer): void {
  const { method, url, httpVersion, rawHeaders, socket } = request;
  const kept = pairsOf(rawHeaders).filter(([name]) => !/^(?:upgrade|http2-settings)$/i.test(name));
  const lines = [`${method} ${url} HTTP/${httpVersion}`, ...kept.map(([name, value]) => `${name}: ${value}`)];
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), rest]));
  server.emit('connection', socket);
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE' || error.code === 'EACCES'
          ? new GatewayError('port-taken', `port ${port} cannot be used (${error.code}); choose another with --port`)
          : error,
      ),
    );
    server.listen(port, '127.0.0.1', resolve);
  });
}

/**
 * Starts a gateway on 127.0.0.1. It forwards each request unchanged to the upstream that the first
 * segment of its path names, and logs model calls. Requests whose Host or Origin is not this
 * machine are rejected.
 *
 * @throws {GatewayError} `port-taken`
 */
export async function serveGateway({
  bases,
  log,
  port,
  steering,
  isHttpOnly = false,
  onPassed,
}: GatewayOptions): Promise<Gateway> {
  const connections = new ClientConnections();
  const target = (request: IncomingMessage): Target | undefined =>
    targetOf(request.url ?? '', bases, {
      hasAccount: headerOf(request.rawHeaders, 'chatgpt-account-id') !== undefined,
    });
  // No timeouts here: client and upstream have their own, and an answer may take an hour.
  const server = createServer({ maxHeaderSize: MOST_HEADER_BYTES, requestTimeout: 0, keepAliveTimeout: 0 });
  server.on('connection', (socket: Socket) => void connections.of(socket));
  const verbs = steering === undefined ? undefined : new VerbEndpoint(steering);
  server.on('request', (request, response) => {
    if (verbs?.takes(request.url) === true) return void verbs.answer(request, response);
    const to = target(request);
    const fault = faultOf(request, to);
    if (fault !== undefined || to === undefined) refuse(response, fault?.status ?? 404, fault?.message ?? '');
    else void forward({ request, response, target: to, connection: connections.of(request.socket), log, steering });
  });
  server.on('upgrade', (request, socket, head) => {
    if (!/^websocket$/i.test(request.headers.upgrade ?? '')) return again(server, request, head);
    const to = target(request);
    const fault = faultOf(request, to);
    if (fault !== undefined || to === undefined) return refuseUpgrade(socket, `${fault?.status ?? 404} Refused`);
    const isCall = wireOf('POST', to.path) !== undefined;
    if (isCall && isHttpOnly) return refuseUpgrade(socket, '426 Upgrade Required');
    if (isCall) onPassed?.();
    forwardUpgrade({ request, socket: socket as Socket, head, target: to });
  });
  await listen(server, port);
  steering?.recover().catch(() => undefined);
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    connections.close();
    await closed;
    await log.close();
    await steering?.close();
  };
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    address,
    ...(verbs === undefined ? {} : { verbs: `${address}${verbs.path}` }),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { systemCode } from '../process/system-error.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import { AnswerTap, type TappedAnswer } from './answer-tap.js';
import type { ClientConnection, Pool } from './client-connections.js';
import { decodedBody, LARGEST_BODY } from './content-encoding.js';
import type { GatewayLog, OpenRequest } from './gateway-log.js';
import { mayBeContinued } from './kept-answer.js';
import {
  codingsOf,
  forwardedHeaders,
  headersFor,
  loggedHeaders,
  loggedPath,
  pairsOf,
  transferOf,
  withoutCredentials,
} from './raw-headers.js';
import type { Outgoing, Refused, Steering } from './steer/steering.js';
import { type Target, type Wire, wireOf } from './wires.js';

/** One exchange between a client and an upstream. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: Target;
  readonly connection: ClientConnection;
  readonly log: GatewayLog;
  readonly steering: Steering | undefined;
}

/** The beginning of a body, and whether more follows. */
interface ReadBody {
  readonly bytes: Buffer;
  readonly isWhole: boolean;
}

/** Reads a body of at most `LARGEST_BODY`. The rest of a larger one stays in the stream. */
async function readBody(request: IncomingMessage): Promise<ReadBody> {
  const pieces: Buffer[] = [];
  let size = 0;
  const iterator = request.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>;
  for await (const piece of iterator) {
    pieces.push(piece);
    size += piece.length;
    if (size > LARGEST_BODY) return { bytes: Buffer.concat(pieces), isWhole: false };
  }
  return { bytes: pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces), isWhole: true };
}

/** A model call that is about to be forwarded. */
interface BegunCall {
  readonly entry?: OpenRequest;
  /** Whether the log keeps the content of the answer. */
  readonly keeps?: boolean;
  /** Undefined if the client's own body is sent. */
  readonly body?: Buffer;
  readonly answered?: Outgoing['answered'];
  /** The gateway's own answer. The request is then not forwarded. */
  readonly refused?: Refused;
}

async function begun(
  { request, target, log, steering }: Exchange,
  wire: Wire,
  { bytes, isWhole }: ReadBody,
): Promise<BegunCall> {
  if (!isWhole) return {};
  const at = Date.now();
  const by = codingsOf(request.rawHeaders);
  const decoded = by === undefined ? bytes : await decodedBody(bytes, by);
  const head = { wire, path: loggedPath(target.path), headers: loggedHeaders(request.rawHeaders) };
  const made = decoded === undefined ? undefined : await steering?.outgoing(head, decoded, at);
  if (made !== undefined && 'status' in made) return { refused: made };
  const isChanged = made !== undefined && made.body !== decoded;
  const sent = made?.body ?? decoded ?? bytes;
  const entry = await log.begin({
    at,
    ...head,
    upstream: target.upstream,
    body: sent,
    // A changed body is sent without an encoding.
    ...(by === undefined || isChanged
      ? {}
      : { encoded: { by: by.slice(0, 100), bytes: bytes.length, isDecoded: decoded !== undefined } }),
    ...defined({ steer: made?.steer, own: isChanged && made.isMissed === true ? decoded : undefined }),
  });
  return {
    keeps: mayBeContinued(wire, sent),
    ...defined({ entry, answered: made?.answered }),
    ...(isChanged ? { body: made.body } : {}),
  };
}

/** Opens a request to the upstream. `how` contains its headers and its pool. */
function requestTo({ base, path }: Target, { method = 'GET' }: IncomingMessage, how: RequestOptions): ClientRequest {
  const open = base.protocol === 'https:' ? httpsRequest : httpRequest;
  // `setHost: false`: the headers contain the host already.
  return open({ host: base.hostname.replace(/^\[|\]$/g, ''), port: base.port, method, path, setHost: false, ...how });
}

/** Opens the upstream's request with the client's headers and the upstream's host. */
function openUpstream(
  { request, target, connection }: Exchange,
  agent: Pool,
  changed: Buffer | undefined,
): ClientRequest {
  const { rawHeaders } = request;
  const given = changed === undefined ? rawHeaders : headersFor(rawHeaders, changed);
  const headers = forwardedHeaders(given, { host: target.base.host });
  // If the client sent a chunked body without a length, so does the gateway.
  const coding = transferOf(given);
  if (coding !== undefined) headers.push('Transfer-Encoding', coding);
  const upstream = requestTo(target, request, { headers, agent, maxHeaderSize: 256 * 1_024 });
  connection.follow(upstream);
  return upstream;
}

/** Failures that the client would also see without the gateway. It can handle them. */
const RESETS: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);

const unreachable = (base: URL, error: unknown): string =>
  JSON.stringify({
    type: 'error',
    error: {
      type: 'api_error',
      message:
        `the Palimpsest gateway cannot reach ${base.origin}: ${messageOf(error)}. Check the network, or start the ` +
        'agent without the gateway',
    },
  });

/** Sends an interim answer to the client, such as 103 (early hints). Node itself answers 100. */
function sendHints(
  to: ServerResponse,
  { statusCode, statusMessage, rawHeaders }: { statusCode: number; statusMessage: string; rawHeaders: string[] },
): void {
  // The socket belongs to this answer only after the earlier answers are written.
  if (statusCode <= 102 || to.headersSent || to.socket === null || to.req.httpVersion !== '1.1') return;
  to.socket.write(headText({ httpVersion: '1.1', statusCode, statusMessage, rawHeaders }));
}

/** Sends the upstream's answer to the client, piece by piece, while `tap` reads a copy. */
function answer(from: IncomingMessage, to: ServerResponse, tap: AnswerTap | undefined): Promise<void> {
  // The client gets the upstream's Date header, not ours.
  to.sendDate = false;
  const headers = forwardedHeaders(from.rawHeaders);
  const coding = transferOf(from.rawHeaders);
  // Node adds `chunked` itself where it is needed.
  if (coding?.includes(',') === true) headers.push('Transfer-Encoding', coding);
  to.writeHead(from.statusCode ?? 502, from.statusMessage, headers);
  to.flushHeaders();
  return new Promise((resolve, reject) => {
    from.on('data', (chunk: Buffer) => {
      if (!to.write(chunk)) from.pause();
      tap?.write(chunk);
    });
    to.on('drain', () => from.resume());
    from.once('end', () => {
      if (from.rawTrailers.length > 0) to.addTrailers(trailersOf(from.rawTrailers));
      to.end();
      resolve();
    });
    from.once('error', reject);
    from.once('close', () => {
      if (!from.complete) reject(new Error('the upstream ended the connection in mid-answer'));
    });
    to.once('close', () => {
      if (!to.writableEnded) reject(new Error('the client left'));
    });
  });
}

const trailersOf = (raw: readonly string[]): [string, string][] =>
  raw.flatMap((name, i) => (i % 2 === 0 ? [[name, raw[i + 1] ?? ''] as [string, string]] : []));

/** Resolves to the head of the upstream's answer. */
function headOf(upstream: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    upstream.once('response', resolve);
    upstream.on('error', reject);
    upstream.once('close', () => reject(new Error('the upstream ended the connection without an answer')));
  });
}

/**
 * Forwards one request and its answer without changing a byte of either body, unless the gateway
 * steers. A model call is logged before it is forwarded and after it was answered. If one side
 * disconnects, the connection to the other side ends, too. Never rejects.
 */
export async function forward(exchange: Exchange): Promise<void> {
  const { request, response, target, connection } = exchange;
  const pool = connection.begin(target.base);
  const wire = wireOf(request.method ?? '', target.path);
  let call: BegunCall | undefined;
  let tapped: TappedAnswer | undefined;
  let upstream: ClientRequest | undefined;
  response.once('close', () => {
    if (!response.writableFinished) upstream?.destroy();
  });
  try {
    const body = wire === undefined ? undefined : await readBody(request);
    if (wire !== undefined && body !== undefined) call = await begun(exchange, wire, body);
    if (response.destroyed) return;
    if (call?.refused !== undefined) {
      response.writeHead(call.refused.status, { 'content-type': 'application/json' });
      response.end(call.refused.text);
      return;
    }
    upstream = openUpstream(exchange, pool, call?.body);
    upstream.on('information', (hints) => sendHints(response, hints));
    const head = headOf(upstream);
    head.catch(() => undefined);
    const bytes = call?.body ?? body?.bytes;
    if (body?.isWhole === true) upstream.end(bytes?.length === 0 ? undefined : bytes);
    else {
      if (body !== undefined) upstream.write(body.bytes);
      pipeline(request, upstream).catch(() => undefined);
    }
    const from = await head;
    const ownless = withoutCredentials(request.rawHeaders, target.path);
    const masked = (text: string): string => exchange.log.mask.text(text);
    const clean = (text: string): string => masked(ownless(text));
    const keeps = call?.keeps === true;
    const tap = wire === undefined ? undefined : new AnswerTap(wire, from.rawHeaders, { clean, masked, keeps });
    try {
      await answer(from, response, tap);
    } finally {
      tapped = await tap?.end(from.statusCode ?? 0);
    }
  } catch (error) {
    upstream?.destroy();
    if (response.headersSent || response.destroyed || RESETS.has(systemCode(error))) response.destroy();
    else {
      response.writeHead(502, { 'content-type': 'application/json' });
      response.end(unreachable(target.base, error));
    }
  } finally {
    connection.end();
    call?.answered?.(tapped?.facts);
    await call?.entry?.end(tapped?.facts, tapped?.kept);
  }
}

/** A request to switch to another protocol, such as a WebSocket. */
interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** The bytes directly after the request's head. */
  readonly head: Buffer;
  readonly target: Target;
}

/** Returns the head of an answer as the upstream sent it. */
function headText({
  httpVersion,
  statusCode,
  statusMessage,
  rawHeaders,
}: Pick<IncomingMessage, 'httpVersion' | 'statusCode' | 'statusMessage' | 'rawHeaders'>): string {
  const lines = pairsOf(rawHeaders).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/${httpVersion} ${statusCode} ${statusMessage}\r\n${lines.join('')}\r\n`;
}

/**
 * Forwards an upgrade and then the bytes of both sides, unread. If the upstream refuses, its answer
 * goes to the client and the connection ends. Messages of a WebSocket are not recorded.
 */
export function forwardUpgrade({ request, socket, head, target }: Upgrade): void {
  const { base } = target;
  const before = socket.bytesWritten;
  const headers = forwardedHeaders(request.rawHeaders, { host: base.host, keepsUpgrade: true });
  const upstream = requestTo(target, request, { headers, agent: false });
  socket.on('error', () => upstream.destroy());
  socket.once('close', () => upstream.destroy());
  upstream.once('error', (error) => {
    const head = 'HTTP/1.1 502 Bad Gateway\r\ncontent-type: application/json\r\nConnection: close\r\n\r\n';
    if (socket.bytesWritten > before || RESETS.has(systemCode(error))) socket.destroy();
    else socket.end(`${head}${unreachable(base, error)}`);
  });
  upstream.once('upgrade', (answer, other: Socket, rest) => {
    socket.setNoDelay(true);
    other.setNoDelay(true);
    socket.write(headText(answer));
    if (rest.length > 0) socket.write(rest);
    if (head.length > 0) other.write(head);
    other.on('error', () => socket.destroy());
    other.once('close', () => socket.destroy());
    socket.once('close', () => other.destroy());
    socket.pipe(other).pipe(socket);
  });
  upstream.once('response', (answer) => {
    const headers = forwardedHeaders(answer.rawHeaders);
    const lines = pairsOf(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n${lines.join('')}Connection: close\r\n\r\n`);
    answer.pipe(socket);
  });
  upstream.end();
}

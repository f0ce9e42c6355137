import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

/** One message of HTTP as it arrived: its first line, its headers in order, and its body. */
export interface WireMessage {
  readonly start: string;
  /** Without those that belong to one connection. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

/** Headers that two connections need not share. */
const OF_ONE_CONNECTION = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host']);

const headerLines = (raw: readonly string[]): readonly string[] =>
  raw.flatMap((name, i) =>
    i % 2 === 0 && !OF_ONE_CONNECTION.has(name.toLowerCase()) ? [`${name}: ${raw[i + 1] ?? ''}`] : [],
  );

async function bodyOf(message: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of message) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** An upstream that keeps what arrived. */
export interface Upstream {
  readonly url: string;
  readonly received: WireMessage[];
  close(): Promise<void>;
}

/** Answers a request that arrived whole. */
export type Answering = (response: ServerResponse, received: WireMessage, request: IncomingMessage) => unknown;

/** Starts an upstream on the loopback address. `path` is added to its base address. */
export async function startUpstream(answer: Answering, path = ''): Promise<Upstream> {
  const received: WireMessage[] = [];
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const body = await bodyOf(incoming);
      const message = {
        start: `${incoming.method} ${incoming.url}`,
        headers: headerLines(incoming.rawHeaders),
        body,
      };
      received.push(message);
      await answer(outgoing, message, incoming);
    })().catch(() => outgoing.destroy());
  });
  const upgraded = new Set<Duplex>();
  server.on('upgrade', (_, socket) => {
    upgraded.add(socket);
    socket.on('error', () => undefined);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    received,
    close: async () => {
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A request to send, with its headers in order. */
export interface Sent {
  readonly method?: string;
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
  /** The path as it goes out; default: that of the address. */
  readonly path?: string;
}

/** Sends a request and returns the whole answer. */
export async function send(url: string, sent: Sent): Promise<WireMessage> {
  const { host, hostname, port, pathname, search } = new URL(url);
  const { method = 'POST', headers = [], body = '', path = `${pathname}${search}` } = sent;
  const bytes = Buffer.from(body);
  const has = (name: string): boolean => headers.some((one, i) => i % 2 === 0 && one.toLowerCase() === name);
  const outgoing = request({
    hostname,
    port,
    method,
    path,
    headers: [
      ...(has('host') ? [] : ['Host', host]),
      ...headers,
      ...(has('content-length') || has('transfer-encoding') || method === 'GET' || method === 'HEAD'
        ? []
        : ['Content-Length', String(bytes.length)]),
    ],
    agent: false,
  });
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  outgoing.end(bytes);
  const [incoming] = await answered;
  return {
    start: `${incoming.statusCode} ${incoming.statusMessage}`,
    headers: headerLines(incoming.rawHeaders),
    body: await bodyOf(incoming),
  };
}

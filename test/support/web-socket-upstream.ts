import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

/** A server of WebSockets that answers each text with others. */
export interface WebSocketUpstream {
  readonly url: string;
  readonly received: string[];
  /** The headers of each handshake. */
  readonly heads: readonly Readonly<Record<string, unknown>>[];
  close(): Promise<void>;
}

/** Added to the client's key by RFC 6455, 1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

function frame(text: string): Buffer {
  const payload = Buffer.from(text);
  const { length } = payload;
  if (length < 126) return Buffer.concat([Buffer.of(0x81, length), payload]);
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE(BigInt(length));
  return Buffer.concat([Buffer.of(0x81, 127), size, payload]);
}

/** Takes the whole frames off a buffer. Frames of a client are masked. */
function frames(bytes: Buffer): { readonly texts: readonly string[]; readonly rest: Buffer } {
  const texts: string[] = [];
  let at = 0;
  while (bytes.length - at >= 2) {
    const short = (bytes[at + 1] ?? 0) & 0x7f;
    const wide = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (bytes.length < at + 6 + wide) break;
    const length = wide === 0 ? short : wide === 2 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
    const begin = at + 6 + wide;
    if (bytes.length < begin + length) break;
    const mask = bytes.subarray(begin - 4, begin);
    const payload = bytes.subarray(begin, begin + length).map((byte, i) => byte ^ (mask[i % 4] ?? 0));
    if (((bytes[at] ?? 0) & 0x0f) === 1) texts.push(Buffer.from(payload).toString('utf8'));
    at = begin + length;
  }
  return { texts, rest: bytes.subarray(at) };
}

/** Starts a server of WebSockets on the loopback address. It offers no compression. */
export async function startWebSockets(answer: (text: string) => readonly string[]): Promise<WebSocketUpstream> {
  const received: string[] = [];
  const heads: Readonly<Record<string, unknown>>[] = [];
  const open = new Set<Duplex>();
  const server = createServer((_, response) => void response.writeHead(404).end());
  server.on('upgrade', (request, socket, head) => {
    heads.push(request.headers);
    open.add(socket);
    socket.on('error', () => undefined);
    const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${GUID}`).digest('base64');
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
    socket.write(`${[...lines, `Sec-WebSocket-Accept: ${accept}`].join('\r\n')}\r\n\r\n`);
    let waiting: Buffer = head;
    const take = (chunk: Buffer): void => {
      const { texts, rest } = frames(Buffer.concat([waiting, chunk]));
      waiting = rest;
      received.push(...texts);
      for (const text of texts) for (const said of answer(text)) socket.write(frame(said));
    };
    take(Buffer.alloc(0));
    socket.on('data', take);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    heads,
    close: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

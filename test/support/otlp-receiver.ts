import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/**
 * A field of a Protocol Buffers message by its number: a number for varint and fixed fields, bytes
 * for all others.
 */
type Field = readonly [number: number, value: bigint | Buffer];

/** Reads a Protocol Buffers message by its wire format only. */
function fieldsOf(bytes: Buffer): readonly Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at++);
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const [number, type] = [Number(key >> 3n), Number(key & 7n)];
    if (type === 0) fields.push([number, varint()]);
    else if (type === 1) {
      fields.push([number, bytes.readBigUInt64LE(at)]);
      at += 8;
    } else if (type === 5) {
      fields.push([number, BigInt(bytes.readUInt32LE(at))]);
      at += 4;
    } else {
      const length = Number(varint());
      fields.push([number, bytes.subarray(at, at + length)]);
      at += length;
    }
  }
  return fields;
}

const all = (message: Buffer, number: number): readonly Buffer[] =>
  fieldsOf(message).flatMap(([given, value]) => (given === number && Buffer.isBuffer(value) ? [value] : []));
const text = (message: Buffer, number: number): string => String(all(message, number)[0] ?? '');
const hex = (message: Buffer, number: number): string => all(message, number)[0]?.toString('hex') ?? '';
const whole = (message: Buffer, number: number): number => {
  const found = fieldsOf(message).find(([given]) => given === number)?.[1];
  return typeof found === 'bigint' ? Number(BigInt.asIntN(64, found)) : 0;
};

type Attributes = Readonly<Record<string, string | number>>;

/**
 * Reads attributes from OTLP's `KeyValue`. Of `AnyValue` it reads texts, booleans, integers and
 * doubles.
 */
function attributesOf(message: Buffer, number: number): Attributes {
  const double = (value: bigint): number => {
    const buffer = Buffer.alloc(8);
    buffer.writeBigUInt64LE(value);
    return buffer.readDoubleLE();
  };
  return Object.fromEntries(
    all(message, number).map((pair) => {
      const [kind = 0, value = 0n] = fieldsOf(all(pair, 2)[0] ?? Buffer.alloc(0))[0] ?? [];
      if (Buffer.isBuffer(value)) return [text(pair, 1), value.toString()];
      return [text(pair, 1), kind === 4 ? double(value) : Number(BigInt.asIntN(64, value))];
    }),
  );
}

/** A received span. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly attributes: Attributes;
  readonly isError: boolean;
  readonly resource: Attributes;
}

/** A collector of OTLP over HTTP, as far as tests need it. */
export interface OtlpReceiver {
  readonly url: string;
  /** All received bodies. */
  readonly bodies: readonly Buffer[];
  readonly headers: readonly IncomingMessage['headers'][];
  spans(): readonly ReceivedSpan[];
  metricNames(): ReadonlySet<string>;
  close(): Promise<void>;
}

function spansIn(body: Buffer): readonly ReceivedSpan[] {
  return all(body, 1).flatMap((ofResource) => {
    const resource = attributesOf(all(ofResource, 1)[0] ?? Buffer.alloc(0), 1);
    return all(ofResource, 2)
      .flatMap((ofScope) => all(ofScope, 2))
      .map((span) => ({
        traceId: hex(span, 1),
        spanId: hex(span, 2),
        parentId: hex(span, 4),
        name: text(span, 5),
        kind: whole(span, 6),
        attributes: attributesOf(span, 9),
        isError: whole(all(span, 15)[0] ?? Buffer.alloc(0), 3) === 2,
        resource,
      }));
  });
}

/** Starts a collector on a free port of the loopback address. */
export async function startReceiver(): Promise<OtlpReceiver> {
  const traces: Buffer[] = [];
  const metrics: Buffer[] = [];
  const bodies: Buffer[] = [];
  const headers: IncomingMessage['headers'][] = [];
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
    const sent = Buffer.concat(pieces);
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
    bodies.push(body);
    headers.push(request.headers);
    if (request.url === '/v1/traces') traces.push(body);
    if (request.url === '/v1/metrics') metrics.push(body);
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    headers,
    spans: () => traces.flatMap(spansIn),
    metricNames: () =>
      new Set(
        metrics
          .flatMap((body) =>
            all(body, 1).flatMap((ofResource) => all(ofResource, 2).flatMap((ofScope) => all(ofScope, 2))),
          )
          .map((metric) => text(metric, 1)),
      ),
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

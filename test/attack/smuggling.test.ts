import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from '@jest/globals';
import { attack } from '../support/attack.js';
import { testWire } from '../support/wire-target.js';
import { testNodeAddress } from '../support/xtdb.js';
import { type AttackedServer, attackedServer } from './attacked-server.js';
import { exchange, type RawTarget, statusesOf } from './raw-http.js';

let server: AttackedServer;
beforeAll(async () => {
  server = await attackedServer();
});
afterAll(() => server.close());

const QUIET_MS = 150;

/** Heads with an ambiguous end of the body. LENGTH stands for the length of the rest. */
const AMBIGUOUS: readonly (readonly string[])[] = [
  ['Content-Length: LENGTH', 'Transfer-Encoding: chunked'],
  ['Transfer-Encoding: chunked', 'Content-Length: LENGTH'],
  ['Content-Length: 0', 'Content-Length: LENGTH'],
  ['Content-Length: LENGTH', 'Content-Length: 0'],
  ['Content-Length: 0, LENGTH'],
  ['Content-Length: LENGTH, 0'],
  ['Content-Length: +LENGTH'],
  ['Content-Length: -1'],
  ['Content-Length: 0x10'],
  ['Content-Length: 1e2'],
  ['Content-Length: LENGTH;'],
  ['Content-Length: 99999999999999999999999999'],
  ['Content-Length: 18446744073709551616'],
  ['Content-Length: 4294967296LENGTH00000000000'],
  ['Content-Length : LENGTH'],
  ['Content-Length\t: LENGTH'],
  [' Content-Length: LENGTH'],
  ['Content-Length: \u000bLENGTH'],
  ['Content-Length: L\u0000ENGTH'],
  ['Content Length: LENGTH', 'Content-Length: 0', 'Content-Length: 5'],
  ['Transfer-Encoding: chunked, identity'],
  ['Transfer-Encoding: identity, chunked', 'Content-Length: LENGTH'],
  ['Transfer-Encoding: xchunked', 'Content-Length: 0'],
  ['Transfer-Encoding: chunkedx', 'Content-Length: 0'],
  ['Transfer-Encoding: "chunked"', 'Content-Length: 0'],
  ['Transfer-Encoding: chunked\u000b', 'Content-Length: 0'],
  ['Transfer-Encoding: \u000bchunked', 'Content-Length: 0'],
  ['Transfer-Encoding : chunked', 'Content-Length: 0'],
  ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity', 'Content-Length: 0'],
  ['Transfer-Encoding: identity', 'Transfer-Encoding: chunked', 'Content-Length: 0'],
  ['Transfer-Encoding: gzip, chunked', 'Content-Length: 0'],
  ['X: y\r\n Transfer-Encoding: chunked', 'Content-Length: -0'],
  ['Transfer-Encoding:\r\n chunked', 'Content-Length: 0'],
  ['X: y\rTransfer-Encoding: chunked', 'Content-Length: 0, 0'],
  ['Transfer_Encoding: chunked', 'Content-Length: 0', 'Content-Length: 1'],
  ['Transfer-Encoding: chunked', 'Content-Length: LENGTH', 'Content-Length: LENGTH'],
];
/** Chunked bodies with an end that only some readers accept. */
const CHUNKS: readonly string[] = [
  '1\r\nZ\r\nQ\r\n\r\nHIDDEN',
  'FFFFFFFFFFFFFFFF1\r\nHIDDEN',
  '10000000000000000\r\nHIDDEN',
  '-1\r\nHIDDEN',
  '+0\r\n\r\nHIDDEN',
  '0x0\r\n\r\nHIDDEN',
  '1 \r\nZ\r\n0\r\nX: HIDDEN',
  '1\rZ\r0\r\rHIDDEN',
  '1\r\nZZ0\r\n\r\nHIDDEN',
  '2\r\n0\r\n\r\nHIDDEN',
  'g\r\nHIDDEN',
];
/**
 * The same heads. The node's front interprets each in one way. No proxy in front of its socket
 * could read them differently.
 */
const LENIENT: readonly string[] = [
  '1\nZ\n0\n\nHIDDEN',
  '1\r\nZ\r\n0\n\nHIDDEN',
  '1;a="\r\nZ\r\n0\r\n\r\nHIDDEN',
  '\r\n0\r\n\r\nHIDDEN',
];
/** Whole heads that are not requests. */
const LINES: readonly string[] = [
  'POST PATH HTTP/1.1 \r\nHost: HOST\r\nContent-Length: 0, 1\r\n\r\nHIDDEN',
  'POST  PATH HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: x\r\n\r\nHIDDEN',
  'POST PATH HTTP/1.1\nHost: HOST\nTransfer-Encoding : chunked\n\nHIDDEN',
  'POST PATH HTTP/9.1\r\nHost: HOST\r\n\r\nHIDDEN',
  'POST PATH\r\nHIDDEN',
  'POST PATH HTTP/1.0\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\nHIDDEN',
  'post PATH HTTP/1.1\r\nHost: HOST\r\nContent-Length: x\r\n\r\nHIDDEN',
  'POST PATH\u0000 HTTP/1.1\r\nHost: HOST\r\n\r\nHIDDEN',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nHIDDEN',
  'CONNECT PATH HTTP/1.1\r\nHost: HOST\r\nContent-Length: y\r\n\r\nHIDDEN',
];

interface Target {
  readonly to: RawTarget;
  readonly path: string;
  readonly head: readonly string[];
  /** A whole request that leaves a trace under a name. */
  hidden(name: string): string;
  /** Returns whether the trace exists. */
  happened(name: string): Promise<boolean>;
}

function requests({ to, path, head }: Target, hidden: string): readonly string[] {
  const begin = [`POST ${path} HTTP/1.1`, ...head];
  const host = head[0]?.replace('Host: ', '') ?? '';
  return [
    ...AMBIGUOUS.flatMap((lines) =>
      ['', '0\r\n\r\n'].map((before) => {
        const body = `${before}${hidden}`;
        const all = [...begin, ...lines.map((line) => line.replaceAll('LENGTH', String(body.length)))];
        return `${all.join('\r\n')}\r\n\r\n${body}`;
      }),
    ),
    ...[...CHUNKS, ...('port' in to ? LENIENT : [])].map(
      (body) => `${[...begin, 'Transfer-Encoding: chunked'].join('\r\n')}\r\n\r\n${body.replace('HIDDEN', hidden)}`,
    ),
    ...LINES.map((text) => text.replace('PATH', path).replace('HOST', host).replace('HIDDEN', hidden)),
  ];
}

attack(
  'smuggling',
  async (tries) => {
    const { serve } = server;
    const wire = testWire();
    const node = testNodeAddress();
    const url = new URL(serve.url);
    const targets: readonly Target[] = [
      {
        to: { port: Number(url.port), host: '127.0.0.1' },
        path: '/v1/nothing-here',
        head: [`Host: ${url.host}`, `Authorization: Bearer ${serve.token}`, 'Content-Type: application/json'],
        hidden: (name) => {
          const body = JSON.stringify({ id: name });
          const head = [`Host: ${url.host}`, `Authorization: Bearer ${serve.token}`, 'Content-Type: application/json'];
          return `POST /v1/sessions HTTP/1.1\r\n${head.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
        },
        happened: async (name) => {
          const headers = { authorization: `Bearer ${serve.token}` };
          return (await fetch(new URL(`/v1/sessions/${name}`, url), { headers })).status === 200;
        },
      },
      {
        to: node.kind === 'unix' ? { path: node.socketPath } : { port: 0 },
        path: '/_xtdb/query',
        head: ['Host: localhost', 'Content-Type: application/edn'],
        hidden: (name) => {
          const body = `{:tx-ops [[:xtdb.api/put {:xt/id "${name}"}]]}`;
          return (
            'POST /_xtdb/submit-tx HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/edn\r\n' +
            `Content-Length: ${body.length}\r\n\r\n${body}`
          );
        },
        happened: async (name) => {
          await wire.get('/sync', { params: { timeout: 20_000 } });
          return (await wire.get('/entity', { params: { eid: name } })).status === 200;
        },
      },
    ];
    try {
      for (const target of targets) {
        const count = requests(target, '').length;
        for (const index of tries.some([...Array(count).keys()], 12)) {
          const name = `smuggled-${randomUUID()}`;
          const request = requests(target, target.hidden(name))[index] ?? '';
          const text = await exchange(target.to, Buffer.from(request, 'latin1'), QUIET_MS);
          const done = (await target.happened(name))
            ? `what was hidden in it was done; answers: ${statusesOf(text).join()}`
            : undefined;
          const good = statusesOf(text).find((status) => status < 400);
          tries.tried(request.slice(0, 300), done ?? (good === undefined ? undefined : `it was answered by ${good}`));
        }
      }
    } finally {
      await wire.close();
    }
  },
  () => server,
);

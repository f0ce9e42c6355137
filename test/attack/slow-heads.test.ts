import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll } from '@jest/globals';
import { type Attack, attack } from '../support/attack.js';
import { testWire } from '../support/wire-target.js';
import { testNodeAddress } from '../support/xtdb.js';
import { type AttackedServer, attackedServer } from './attacked-server.js';
import { type RawTarget, rawSocket } from './raw-http.js';

let server: AttackedServer;
beforeAll(async () => {
  server = await attackedServer();
});
afterAll(() => server.close());

/** Far more than an answer takes. */
const MOST_MS = 5_000;

/** The target and the beginning of slow requests, and another request to it. */
type Way = readonly [to: RawTarget, head: string, probe: () => Promise<number>];

async function slowly(
  tries: Attack,
  [to, head, probe]: Way,
  { connections, rounds }: { connections: number; rounds: number },
) {
  // Three kinds: an endless head, a head that never begins, and a body with a byte now and then.
  const sockets = Array.from({ length: connections }, (_, n) => {
    const socket = rawSocket(to);
    if (n % 3 === 0) socket.write(head);
    if (n % 3 === 2) socket.write(`${head}Content-Length: 100000\r\n\r\n`);
    return socket;
  });
  for (let round = 0; round < rounds; round++) {
    for (const [n, socket] of sockets.entries())
      if (socket.writable) socket.write(n % 3 === 2 ? ' ' : n % 3 === 0 ? 'X-A: b\r\n' : 'G');
    const from = performance.now();
    const status = await probe();
    const took = Math.round(performance.now() - from);
    tries.tried(
      `round ${round} of ${connections} slow connections to ${JSON.stringify(to)}`,
      status === 200 && took < MOST_MS ? undefined : `another request was answered by ${status} after ${took} ms`,
    );
    await pause(tries.size(20, 500));
  }
  for (const socket of sockets) socket.destroy();
}

attack(
  'slow heads',
  async (tries) => {
    const { serve } = server;
    const url = new URL(serve.url);
    const authorization = `Bearer ${serve.token}`;
    const wire = testWire();
    const node = testNodeAddress();
    const ways: readonly Way[] = [
      [
        { port: Number(url.port), host: '127.0.0.1' },
        `POST /mcp HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: ${authorization}\r\n`,
        async () => (await fetch(new URL('/v1/openapi.json', url), { headers: { authorization } })).status,
      ],
      [
        node.kind === 'unix' ? { path: node.socketPath } : { port: 0 },
        'POST /_xtdb/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/edn\r\n',
        async () => (await wire.get('/status')).status,
      ],
    ];
    const connections = tries.size(40, 400);
    const rounds = tries.size(2, 60);
    try {
      await Promise.all(ways.map((way) => slowly(tries, way, { connections, rounds })));
    } finally {
      await wire.close();
    }
  },
  () => server,
);

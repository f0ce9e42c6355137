import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn, setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { kw, sym } from '../../../src/edn/values.js';
import { CONFIGS, privateFolder, type RunningFront, startFront } from '../../support/front-process.js';
import { until } from '../../support/until.js';
import { errorKey, readEdn, submitAndWait, Wire, type WireAnswer } from '../../support/wire.js';
import { testWire } from '../../support/wire-target.js';
import { openTestClient } from '../../support/xtdb.js';

const QUERY_LIMIT_MS = 500;
const AWAIT_LIMIT_MS = 200;
const MAX_BODY = 1_000_000;
/** How long an idle front is watched. */
const MEASURED_MS = 1_000;
/** Far more than any limit of this front, and far less than the time of the requested work. */
const NEVER_MS = 200_000;
const ROWS = 2_000;

let front: RunningFront;
let wire: Wire;
let folder: string;
let remove: () => Promise<void>;

beforeAll(async () => {
  ({ dir: folder, remove } = await privateFolder());
  const socketPath = join(folder, 's');
  const flags = [
    '--config',
    CONFIGS.memory,
    '--socket',
    socketPath,
    '--query-timeout',
    String(QUERY_LIMIT_MS),
    '--max-rows',
    '100',
  ];
  front = await startFront([
    ...flags,
    '--max-queries',
    '2',
    '--await-timeout',
    String(AWAIT_LIMIT_MS),
    '--max-body',
    String(MAX_BODY),
  ]);
  wire = new Wire({ socketPath });
  await submitAndWait(
    wire,
    Array.from({ length: ROWS }, (_, n) => `[:xtdb.api/put {:xt/id "d${n}" :n ${n}}]`).join(' '),
  );
});
afterAll(async () => {
  await wire.close();
  await front.stop();
  await remove();
});

const ask = (query: string): Promise<WireAnswer> => wire.post('/query', `{:query ${query}}`);
const JOIN_WITHOUT_END = '{:find [(count a)] :where [[a :n] [b :n] [c :n] [d :n]]}';

/** Processor time the front has used so far, in clock ticks. */
function ticksUsed(): number {
  const fields = readFileSync(`/proc/${front.ready.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

describe('slow bodies', () => {
  test('block no thread: a complete request is answered meanwhile', async () => {
    const slow = Array.from({ length: 900 }, () => {
      const socket = connect(join(folder, 's'));
      let said = '';
      socket.on('data', (piece) => {
        said += piece.toString('latin1');
      });
      socket.on('error', () => undefined);
      socket.write(
        'POST /_xtdb/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/edn\r\nContent-Length: ' +
          '100000\r\n\r\n{',
      );
      return { socket, answer: (): string => said };
    });
    await Promise.all(slow.map(({ socket }) => once(socket, 'connect')));
    try {
      const answer = await ask('{:find [a] :where [[a :n 7]]}');
      expect([answer.status, readEdn(answer.text)]).toEqual([200, [['d7']]]);
      // No request was given up, because each was still arriving.
      expect(slow.map((one) => one.answer()).filter((text) => text !== '')).toEqual([]);
      // Requests that all break off at once take no slot either.
      for (const { socket } of slow) socket.destroy();
      const answers = await Promise.all(Array.from({ length: 40 }, () => ask('{:find [a] :where [[a :n 7]]}')));
      expect(
        answers.filter(({ status, text }) => status !== 200 && !text.includes('queries')).map(({ text }) => text),
      ).toEqual([]);
    } finally {
      for (const { socket } of slow) socket.destroy();
    }
  });

  test('are answered once complete, in any number of parts', async () => {
    const body = `{:query {:find [a] :where [[a :n 8]]} ;${' '.repeat(200_000)}\n}`;
    const socket = connect(join(folder, 's'));
    const said: Buffer[] = [];
    socket.on('data', (piece) => said.push(piece));
    socket.write(
      'POST /_xtdb/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/edn\r\nContent-Length: ' +
        `${body.length}\r\n\r\n`,
    );
    for (let at = 0; at < body.length; at += 30_000) {
      socket.write(body.slice(at, at + 30_000));
      // Each part is sent in a separate turn of the event loop, so that most parts arrive alone.
      await nextTurn();
    }
    const text = await until(
      () => Buffer.concat(said).toString('latin1'),
      (all) => all.includes('d8'),
    );
    socket.destroy();
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('the time limit of queries', () => {
  test.each([
    ['a join without end, counted', JOIN_WITHOUT_END],
    ['a join without end, sorted', '{:find [a b c] :where [[a :n] [b :n] [c :n]] :order-by [[a :asc]]}'],
    ['one whose rows are all refused', '{:find [a] :where [[a :n x] [b :n y] [c :n z] [(< x y)] [(< y z)] [(< z x)]]}'],
    [
      'one inside a sub-query',
      '{:find [x] :where [[a :n x] [(q {:find [(count b)] :where [[b :n] [c :n] [d :n]]}) y]]}',
    ],
    [
      'one inside an or',
      '{:find [a] :where [[a :n x] (or-join [a] (and [a :n x] [b :n y] [c :n z] [(+ x y z) s] [(< s 0)]))]}',
    ],
    ['one inside a rule', '{:find [(count x)] :where [(r x)] :rules [[(r x) [x :n] [y :n] [z :n] [w :n]]]}'],
  ])('stops %s', async (_name, query) => {
    const started = Date.now();
    const answer = await ask(query);
    const took = Date.now() - started;
    expect([answer.status, readEdn(answer.text)]).toEqual([
      500,
      {
        type: 'exception',
        class: 'java.util.concurrent.TimeoutException',
        message: `Stopped after ${QUERY_LIMIT_MS} ms`,
      },
    ]);
    expect(took).toBeGreaterThanOrEqual(QUERY_LIMIT_MS - 50);
  });

  test('leaves nothing running: no active query, an idle CPU', async () => {
    expect((await ask(JOIN_WITHOUT_END)).status).toBe(500);
    // The node notes a query's end in a separate thread.
    await until(
      async () => (await wire.get('/active-queries')).text,
      (active) => active === '()',
    );
    if (process.platform === 'linux') {
      const before = ticksUsed();
      await setTimeout(MEASURED_MS);
      expect(ticksUsed() - before).toBeLessThan(30);
    }
  });

  test('can be lowered by a query', async () => {
    const answer = await ask(`{:timeout 100 ${JOIN_WITHOUT_END.slice(1)}`);
    expect(answer.status).toBe(500);
    expect(readEdn(answer.text)).toMatchObject({ message: 'Stopped after 100 ms' });
  });

  test('cannot be raised by a query', async () => {
    expect(readEdn((await ask(`{:timeout 3600000 ${JOIN_WITHOUT_END.slice(1)}`)).text)).toMatchObject({
      message: `Stopped after ${QUERY_LIMIT_MS} ms`,
    });
  });
});

describe('other limits of queries', () => {
  test('return a 400 beyond the allowed rows, and not at exactly that number', async () => {
    const over = await ask('{:find [n] :where [[e :n n]] :limit 101}');
    expect([over.status, errorKey(over)]).toEqual([400, 'too-many-rows']);
    expect(readEdn((await ask('{:find [n] :where [[e :n n]] :limit 100}')).text)).toHaveLength(100);
  });

  test('keep their names for our client if rows were already sent', async () => {
    const client = openTestClient({}, { kind: 'unix', socketPath: join(folder, 's') });
    const [e, n, text] = [sym('e'), sym('n'), sym('text')];
    const late = { find: [n, text], in: [text], where: [[e, kw('n'), n]], limit: 200 };
    const snapshot = await client.db();
    await expect(snapshot.query(late, ['x'.repeat(1_000)])).rejects.toMatchObject({
      code: 'too-large',
      errorKey: 'too-many-rows',
    });
    await client.close();
  });

  test('ask an excess query to retry, which then succeeds', async () => {
    let refused: WireAnswer | undefined;
    // If one request comes only after another has ended, the front accepts all of them. The test
    // then tries again.
    while (refused === undefined) {
      const running = Array.from({ length: 3 }, () => ask(JOIN_WITHOUT_END));
      expect((await wire.get('/entity', { params: { eid: 'd1' } })).status).toBe(200);
      refused = (await Promise.all(running)).find(({ status }) => status === 503);
    }
    expect(refused.headers['retry-after']).toBe('1');
    const welcome = await until(
      () => ask('{:find [n] :where [["d1" :n n]]}'),
      ({ status }) => status !== 503,
    );
    expect(readEdn(welcome.text)).toEqual([[1]]);
  });
});

describe('the limit of waiting', () => {
  test.each([
    ['nothing', {}, AWAIT_LIMIT_MS],
    ['an hour', { timeout: 3_600_000 }, 6 * AWAIT_LIMIT_MS],
  ])('bounds a client that requests %s', async (_name, asked, limit) => {
    const started = Date.now();
    const answer = await wire.get('/await-tx', { params: { 'tx-id': 99_999_999, ...asked } });
    const took = Date.now() - started;
    expect(answer.status).toBe(500);
    expect(took).toBeGreaterThanOrEqual(limit - 20);
    expect(took).toBeLessThan(NEVER_MS);
  });

  test('holds on every route that awaits', async () => {
    const started = Date.now();
    expect((await wire.get('/entity', { params: { eid: 'd1', 'await-tx-id': 99_999_999 } })).status).toBe(500);
    expect(
      (await wire.post('/query', '{:query {:find [e] :where [[e :n]]}}', { params: { 'await-tx-id': 99_999_999 } }))
        .status,
    ).toBe(500);
    expect(Date.now() - started).toBeLessThan(NEVER_MS);
  });
});

describe('the limit of bodies', () => {
  const bodyOf = (bytes: number): string => {
    const frame = '{:tx-ops [[:xtdb.api/put {:xt/id "body" :text ""}]]}';
    return frame.replace('""', `"${'a'.repeat(bytes - frame.length)}"`);
  };

  test('accepts a body of exactly the limit and returns a 413 for one more byte', async () => {
    expect((await wire.post('/submit-tx', bodyOf(MAX_BODY))).status).toBe(202);
    expect((await wire.post('/submit-tx', bodyOf(MAX_BODY + 1))).status).toBe(413);
  });

  test('counts a body of unknown length as it arrives', async () => {
    const pieces = Readable.from(Array.from({ length: 40 }, () => Buffer.alloc(50_000, 'a')));
    expect((await wire.post('/submit-tx', pieces)).status).toBe(413);
    expect((await wire.get('/status')).status).toBe(200);
  });

  test('refuses 80 MB on a node with the usual limit', async () => {
    const suite = testWire();
    try {
      const answer = await suite.post('/submit-tx', Buffer.alloc(80_000_000, 'a'));
      expect([answer.status, readEdn(answer.text)]).toEqual([
        413,
        { error: 'The body is larger than 67108864 bytes.' },
      ]);
      expect((await suite.get('/status')).status).toBe(200);
    } finally {
      await suite.close();
    }
  });
});

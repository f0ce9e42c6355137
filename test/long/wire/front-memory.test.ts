import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CONFIGS, privateFolder, type RunningFront, startFront } from '../../support/front-process.js';
import { errorKey, JSON_TYPE, readEdn, submitAndWait, TRANSIT, Wire, type WireAnswer } from '../../support/wire.js';

/**
 * One request must not take the memory or threads that others need. The front has a heap of 384 MB.
 */
let front: RunningFront;
let wire: Wire;
let socketPath: string;
let remove: () => Promise<void>;

beforeAll(async () => {
  const folder = await privateFolder();
  remove = folder.remove;
  socketPath = join(folder.dir, 's');
  front = await startFront(['--config', CONFIGS.rocksdb, '--data', folder.dir, '--socket', socketPath]);
  wire = new Wire({ socketPath });
  await submitAndWait(wire, '[:xtdb.api/put {:xt/id "small" :n 1}]');
}, 180_000);
afterAll(async () => {
  await wire.close();
  await front.stop();
  await remove();
});

const letters = (count: number): string => 'a'.repeat(count);
const ask = (query: string, inArgs = '[]'): Promise<WireAnswer> =>
  wire.post('/query', `{:query ${query} :in-args ${inArgs}}`);

/** A second user of the node, who must get answers regardless of the first one's requests. */
async function expectAnswers(): Promise<void> {
  const started = Date.now();
  expect((await wire.get('/status')).status).toBe(200);
  expect((await wire.get('/entity', { params: { eid: 'small' } })).status).toBe(200);
  expect(Date.now() - started).toBeLessThan(5_000);
}

describe('a value that a query builds', () => {
  const words = `[${'1 '.repeat(5_000)}]`;
  test.each([
    ['two thousand million drawn at random', '{:find [(rand 2000000000 x)] :in [[x ...]]}', '[[1 2 3]]'],
    [
      'a text out of a text between many',
      '{:find [x] :in [a b] :where [[(interpose a b) i] [(vec i) v] [(str v) x]]}',
      `["${letters(1e6)}" ${words}]`,
    ],
    ['the same in find', '{:find [(count (str (vec (interpose a b))))] :in [a b]}', `["${letters(1e6)}" ${words}]`],
    ['a text ninety times', `{:find [x] :in [a] :where [[(str ${'a '.repeat(90)}) x]]}`, `["${letters(1e6)}"]`],
    [
      'a text ninety times, qualified',
      `{:find [x] :in [a] :where [[(clojure.core/str ${'a '.repeat(90)}) x]]}`,
      `["${letters(1e6)}"]`,
    ],
    [
      'a text ninety times in a sub-query',
      `{:find [y] :in [a] :where [[(q "{:find [(str ${'a '.repeat(90)})] :in [a]}" a) [[y]]]]}`,
      `["${letters(1e6)}"]`,
    ],
    [
      'a text ninety times in a rule',
      `{:find [x] :in [a] :where [(r a x)] :rules [[(r a x) [(str ${'a '.repeat(90)}) x]]]}`,
      `["${letters(1e6)}"]`,
    ],
    [
      'a text ninety times to sort by',
      `{:find [(str ${'a '.repeat(90)})] :in [a] :order-by [[(str ${'a '.repeat(90)}) :asc]]}`,
      `["${letters(1e6)}"]`,
    ],
    [
      'a collection of a text a hundred times',
      `{:find [x] :in [a] :where [[(vector ${'a '.repeat(100)}) x]]}`,
      `["${letters(1e6)}"]`,
    ],
    ['an argument of 17 MB', '{:find [(count a)] :in [a]}', `["${letters(17e6)}"]`],
  ])('is refused if it is too large: %s', async (_name, query, inArgs) => {
    const answer = await ask(query, inArgs);
    expect([answer.status, errorKey(answer)]).toEqual([400, 'value-too-large']);
    await expectAnswers();
  });

  test.each([
    ['in clauses, which XTDB keeps', '{:find [(count x)] :in [[n ...] a] :where [[(str a n) x]]}'],
    [
      'in an aggregate',
      '{:find [(count y)] :in [[n ...] a] ' +
        ':where [[(identity n) m] [(q {:find [(distinct (str a m))] :in [a m]} a m) [[y]]]]}',
    ],
    ['to sort by', '{:find [(str a n)] :in [[n ...] a] :order-by [[(str a n) :asc]]}'],
  ])('counts together with other held values: %s', async (_name, query) => {
    const answer = await ask(query, `[[${Array.from({ length: 100 }, (_, n) => n).join(' ')}] "${letters(1e6)}"]`);
    expect([answer.status, errorKey(answer)]).toEqual([400, 'too-much-memory']);
    await expectAnswers();
  });

  test('stops counting once its row is sent', async () => {
    const answer = await ask(
      '{:find [(str a n)] :in [[n ...] a]}',
      `[[${Array.from({ length: 100 }, (_, n) => n).join(' ')}] "${letters(1e6)}"]`,
    );
    expect([answer.status, answer.text.length]).toEqual([200, 100 * (1e6 + 5) + 10 + 90 * 2 + 1]);
  });

  test('returns names of functions unchanged', async () => {
    await ask('{:find [(distinct (str n)) (max 2 n)] :where [["small" :n n] [(str n "as-written") x]]}');
    const deadline = Date.now() + 5_000;
    let recent = '';
    while (!recent.includes('as-written') && Date.now() < deadline) recent = (await wire.get('/recent-queries')).text;
    expect(recent).toContain('(distinct (str n))');
    expect(recent).toContain('(max 2 n)');
    expect(recent).not.toMatch(/counted|bounded/);
  });
});

describe('documents', () => {
  test('of more than 16 MB are refused', async () => {
    const answer = await wire.post(
      '/submit-tx',
      `{:tx-ops [[:xtdb.api/put {:xt/id "huge" :text "${letters(17e6)}"}]]}`,
    );
    expect([answer.status, readEdn(answer.text)]).toEqual([
      413,
      { error: 'A document of more than 16777216 characters' },
    ]);
  });

  test('are bounded together, but not one after the other', async () => {
    const documents = Array.from({ length: 24 }, (_, n) => [
      '~:xtdb.api/put',
      ['^ ', '~:xt/id', `m${n}`, '~:m', 1, '~:text', `${n}${letters(4e6)}`],
    ]);
    for (let at = 0; at < documents.length; at += 8) {
      const body = JSON.stringify(['^ ', '~:tx-ops', documents.slice(at, at + 8)]);
      expect((await wire.post('/submit-tx', body, { type: TRANSIT })).status).toBe(202);
    }
    expect((await wire.get('/sync', { params: { timeout: 60_000 } })).status).toBe(200);
    const all = await ask('{:find [(pull e [*])] :where [[e :m 1]] :batch-size 100}');
    expect([all.status, errorKey(all)]).toEqual([400, 'too-much-memory']);
    const turns = await ask('{:find [(pull e [*])] :where [[e :m 1]] :batch-size 1}');
    expect(turns.status).toBe(200);
    expect(turns.text.length).toBeGreaterThan(24 * 4e6);
    await expectAnswers();
  }, 180_000);
});

describe('bodies', () => {
  test.each<[string, string, string]>([
    ['EDN', 'application/edn', `{:tx-ops [[:xtdb.api/put {:xt/id 1 :n [${'#{1}'.repeat(2_000_000)}]}]]}`],
    ['JSON', JSON_TYPE, `{"tx-ops":[["put",{"xt/id":1,"n":[${'[1],'.repeat(2_000_000)}1]}]]}`],
    [
      'transit',
      TRANSIT,
      `["^ ","~:tx-ops",[["~:xtdb.api/put",["^ ","~:xt/id",1,"~:n",[${'[1],'.repeat(2_000_000)}1]]]]]`,
    ],
  ])('return a 413 with more values than there is room for: %s', async (_name, type, body) => {
    const answer = await wire.post('/submit-tx', body, { type });
    expect([answer.status, answer.text]).toEqual([
      413,
      expect.stringContaining('larger than the memory of this node allows'),
    ]);
    await expectAnswers();
  });

  test('wait or get a retry if they take all the room together', async () => {
    const send = (n: number): Promise<WireAnswer> =>
      wire.post('/submit-tx', `{:tx-ops [[:xtdb.api/put {:xt/id "b${n}" :text "${letters(15e6)}"}]]}`);
    const sent = Array.from({ length: 12 }, (_, n) => send(n));
    await expectAnswers();
    for (const answer of await Promise.all(sent)) {
      expect([202, 503]).toContain(answer.status);
      if (answer.status === 503) expect(answer.headers['retry-after']).toBe('1');
    }
    expect((await wire.get('/sync', { params: { timeout: 60_000 } })).status).toBe(200);
    await expectAnswers();
  }, 180_000);
});

describe('threads', () => {
  test('stay free for others while requests wait for transactions', async () => {
    const waiting = Array.from({ length: 300 }, () =>
      wire.get('/await-tx', { params: { 'tx-id': 99_999_999, timeout: 8_000 } }),
    );
    await new Promise((resolve) => setTimeout(resolve, 500));
    await expectAnswers();
    const answers = await Promise.all(waiting);
    const refused = answers.filter((answer) => answer.status === 503);
    expect(refused.length).toBeLessThanOrEqual(44);
    expect(refused.every((answer) => answer.headers['retry-after'] === '1')).toBe(true);
    expect(answers.filter((answer) => answer.status === 500).length).toBe(300 - refused.length);
  }, 60_000);

  test('stay free for others during a hundred endless bodies', async () => {
    const sockets: Socket[] = [];
    try {
      for (let n = 0; n < 100; n++) {
        const socket = createConnection(socketPath);
        socket.on('error', () => undefined);
        socket.write(
          'POST /_xtdb/submit-tx HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/edn\r\nContent-Length: ' +
            '1000\r\n\r\n{:tx',
        );
        sockets.push(socket);
      }
      await expectAnswers();
    } finally {
      for (const socket of sockets) socket.destroy();
    }
    await submitAndWait(wire, '[:xtdb.api/put {:xt/id "after" :n 1}]');
  }, 60_000);
});

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  errorKey,
  JSON_TYPE,
  readEdn,
  submitAndWait,
  TRANSIT,
  type Wire,
  type WireAnswer,
} from '../../support/wire.js';
import { testWire } from '../../support/wire-target.js';
import { uniquePrefix } from '../../support/xtdb.js';

let wire: Wire;
beforeAll(() => {
  wire = testWire();
});
afterAll(() => wire.close());

const record = (answer: WireAnswer): Record<string, unknown> => readEdn(answer.text) as Record<string, unknown>;
const submit = (ops: string, more = ''): Promise<WireAnswer> => wire.post('/submit-tx', `{:tx-ops [${ops}]${more}}`);
const isCommitted = async (txId: number): Promise<unknown> =>
  record(await wire.get('/tx-committed', { params: { 'tx-id': txId, 'await-tx-id': txId } }))['tx-committed?'];
const v = async (id: string): Promise<unknown> => record(await wire.get('/entity', { params: { eid: id } })).v;

describe('POST /submit-tx', () => {
  test('answers 202 with the receipt', async () => {
    const answer = await submit(`[:xtdb.api/put {:xt/id "${uniquePrefix()}"}]`);
    expect(answer.status).toBe(202);
    expect(record(answer)).toEqual({ 'xtdb.api/tx-id': expect.any(Number), 'xtdb.api/tx-time': expect.any(Date) });
    expect(answer.text).toMatch(/#inst "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}-00:00"/);
  });

  test('puts, matches, deletes and evicts', async () => {
    const id = uniquePrefix();
    await submitAndWait(wire, `[:xtdb.api/match "${id}" nil] [:xtdb.api/put {:xt/id "${id}" :v 1}]`);
    await submitAndWait(wire, `[:xtdb.api/match "${id}" {:xt/id "${id}" :v 1}] [:xtdb.api/put {:xt/id "${id}" :v 2}]`);
    expect(await v(id)).toBe(2);
    await submitAndWait(wire, `[:xtdb.api/cas {:xt/id "${id}" :v 2} {:xt/id "${id}" :v 3}]`);
    expect(await v(id)).toBe(3);
    await submitAndWait(wire, `[:xtdb.api/delete "${id}"]`);
    expect((await wire.get('/entity', { params: { eid: id } })).status).toBe(404);
    await submitAndWait(wire, `[:xtdb.api/evict "${id}"]`);
    const history = await wire.get('/entity', { params: { eid: id, history: true, 'sort-order': 'asc' } });
    expect(history.text).toBe('()');
  });

  test('aborts the whole transaction on a failed match, which only /tx-committed shows', async () => {
    const id = uniquePrefix();
    const txId = await submitAndWait(
      wire,
      `[:xtdb.api/put {:xt/id "${id}" :v 1}] [:xtdb.api/match "${id}none" {:xt/id "${id}none"}]`,
    );
    expect(await isCommitted(txId)).toBe(false);
    expect((await wire.get('/entity', { params: { eid: id } })).status).toBe(404);
    const log = await wire.get('/tx-log', { params: { 'after-tx-id': txId - 1 } });
    expect(log.text).not.toContain(`:xtdb.api/tx-id ${txId} `);
  });

  test('accepts a transaction time, and aborts if it precedes the last one', async () => {
    const answer = await submit(
      `[:xtdb.api/put {:xt/id "${uniquePrefix()}"}]`,
      ' :xtdb.api/submit-tx-opts {:xtdb.api/tx-time #inst "1999"}',
    );
    expect(answer.status).toBe(202);
    expect(await isCommitted(Number(record(answer)['xtdb.api/tx-id']))).toBe(false);
  });

  test.each([
    ['an unknown operation', '[:xtdb.api/upsert {:xt/id 1}]'],
    ['no operation', '[]'],
    ['an operation that is not a vector', '{:op :put}'],
    ['an operation in a list', '(:xtdb.api/put {:xt/id 1})'],
    ['a document without id', '[:xtdb.api/put {:a 1}]'],
    ['a document with a nil id', '[:xtdb.api/put {:xt/id nil}]'],
    ['a document with a vector as id', '[:xtdb.api/put {:xt/id [1]}]'],
    ['a document with text keys', '[:xtdb.api/put {:xt/id 1 "a" 1}]'],
    ['a document that is text', '[:xtdb.api/put "doc"]'],
    ['a valid time that is text', '[:xtdb.api/put {:xt/id 1} "2020-01-01"]'],
    ['a number of ten thousand bits', `[:xtdb.api/put {:xt/id 1 :n ${'9'.repeat(999)}${'9'.repeat(1)}M :m 1e99999M}]`],
    ['metadata', '[:xtdb.api/put ^{:a 1} {:xt/id 1}]'],
    ['operations of the log itself', '[:crux.tx/put "a" "b"]'],
  ])('refuses %s', async (_name, op) => {
    const answer = await submit(op);
    expect([answer.status, errorKey(answer)]).toEqual([400, 'invalid-tx-op']);
  });

  test('refuses unknown options', async () => {
    const answer = await submit('', ' :xtdb.api/submit-tx-opts {:evil.ns/option 1}');
    expect([answer.status, errorKey(answer)]).toEqual([400, 'invalid-submit-tx-opts']);
  });
});

describe('operations that would run code or stop the indexer', () => {
  const body = (op: string): string => `{:tx-ops [[:xtdb.api/put {:xt/id "fine"}] ${op}]}`;
  test.each<readonly [string, string, string | undefined, string]>([
    ['a function operation', body('[:xtdb.api/fn :f 1]'), undefined, 'tx-fn-not-allowed'],
    ['a function operation in transit', '["^ ","~:tx-ops",[["~:xtdb.api/fn","~:f"]]]', TRANSIT, 'tx-fn-not-allowed'],
    ['a function operation in JSON', '{"tx-ops":[["fn","f"]]}', JSON_TYPE, 'tx-fn-not-allowed'],
    ['a function', body('[:xtdb.api/put {:xt/id :f :xt/fn (fn [ctx] [])}]'), undefined, 'reserved-key'],
    ['a function in JSON', '{"tx-ops":[["put",{"xt/id":"f","xt/fn":"(fn [ctx] [])"}]]}', JSON_TYPE, 'reserved-key'],
    ['a function in a match', body('[:xtdb.api/match :f {:xt/id :f :xt/fn (fn [ctx] [])}]'), undefined, 'reserved-key'],
    [
      'a function in the second document of a cas',
      body('[:xtdb.api/cas nil {:xt/id :f :xt/fn (fn [ctx] [])}]'),
      undefined,
      'reserved-key',
    ],
    [
      'the poison pill: a function of old',
      body('[:xtdb.api/put {:xt/id :f :crux.db/fn 1}]'),
      undefined,
      'reserved-key',
    ],
    ['a second id', body('[:xtdb.api/put {:xt/id 1 :crux.db/id 2}]'), undefined, 'reserved-key'],
    [
      'a failed function’s mark',
      body('[:xtdb.api/put {:xt/id 1 :crux.db.fn/failed? true}]'),
      undefined,
      'reserved-key',
    ],
    ['a function’s arguments', body('[:xtdb.api/put {:xt/id 1 :crux.db.fn/args []}]'), undefined, 'reserved-key'],
    [
      'an evicted document’s mark',
      body('[:xtdb.api/put {:xt/id 1 :xtdb.api/evicted? true}]'),
      undefined,
      'reserved-key',
    ],
  ])('are refused before anything reaches the log: %s', async (_name, text, type, key) => {
    const marker = await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${uniquePrefix()}"}]`);
    const answer = await wire.post('/submit-tx', text, type === undefined ? {} : { type });
    expect([answer.status, errorKey(answer)]).toEqual([400, key]);
    const next = await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${uniquePrefix()}"}]`);
    const log = readEdn((await wire.get('/tx-log', { params: { 'after-tx-id': marker } })).text) as Record<
      string,
      number
    >[];
    expect(
      log.filter((tx) => (tx['xtdb.api/tx-id'] ?? 0) < next).every((tx) => tx['xtdb.api/tx-events'] !== undefined),
    ).toBe(true);
    expect((await wire.get('/entity', { params: { eid: 'fine' } })).status).toBe(404);
    expect(record(await wire.get('/status'))['ingester-failed?']).toBe(false);
  });
});

describe('waiting', () => {
  test('GET /tx-committed is 400 out of sync before the transaction is indexed, and needs an id', async () => {
    const ahead = await wire.get('/tx-committed', { params: { 'tx-id': 99_999_999 } });
    expect([ahead.status, record(ahead)['xtdb.error/error-type']]).toEqual([400, 'node-out-of-sync']);
    expect((await wire.get('/tx-committed')).status).toBe(400);
    expect((await wire.get('/tx-committed', { params: { 'tx-id': 'one' } })).status).toBe(400);
  });

  test('GET /await-tx and every await-tx-id end in a 500 TimeoutException without the transaction', async () => {
    for (const [path, params] of [
      ['/await-tx', { 'tx-id': 99_999_999, timeout: 50 }],
      ['/tx-committed', { 'tx-id': 0, 'await-tx-id': 99_999_999, 'await-tx-timeout': 50 }],
      ['/latest-completed-tx', { awaitTxId: 99_999_999, awaitTxTimeout: 50 }],
      ['/await-tx-time', { 'tx-time': '2999-01-01', timeout: 50 }],
      ['/sync', { 'tx-time': '2999-01-01', timeout: 50 }],
    ] as const) {
      const answer = await wire.get(path, { params });
      expect([path, answer.status, record(answer).class]).toEqual([path, 500, 'java.util.concurrent.TimeoutException']);
    }
  });

  test('GET /await-tx, /await-tx-time and /sync answer once it is there', async () => {
    const receipt = record(await submit(`[:xtdb.api/put {:xt/id "${uniquePrefix()}"}]`)) as Record<
      string,
      number | Date
    >;
    const txId = Number(receipt['xtdb.api/tx-id']);
    const done = record(await wire.get('/await-tx', { params: { 'tx-id': txId } }));
    expect(Number(done['xtdb.api/tx-id'])).toBeGreaterThanOrEqual(txId);
    const time = (receipt['xtdb.api/tx-time'] as Date).toISOString();
    expect((await wire.get('/await-tx-time', { params: { 'tx-time': time } })).status).toBe(200);
    expect(record(await wire.get('/sync'))['xtdb.api/tx-time']).toEqual(expect.any(Date));
    expect((await wire.get('/await-tx')).status).toBe(400);
    expect((await wire.get('/await-tx-time', { params: { 'tx-time': 'soon' } })).status).toBe(400);
  });

  test('await-tx-time alone does not wait', async () => {
    expect((await wire.get('/db', { params: { 'await-tx-time': '2999-01-01T00:00:00Z' } })).status).toBe(200);
  });
});

describe('GET /tx-log and the latest transactions', () => {
  test('lists events or operations after an id', async () => {
    const id = uniquePrefix();
    const first = await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${id}" :v 1} #inst "2020-01-01"]`);
    const second = await submitAndWait(wire, `[:xtdb.api/delete "${id}"]`);
    const logAfter = async (params: Record<string, number | boolean>): Promise<readonly Record<string, unknown>[]> =>
      (readEdn((await wire.get('/tx-log', { params })).text) as Record<string, unknown>[]).filter((tx) =>
        [first, second].includes(Number(tx['xtdb.api/tx-id'])),
      );
    const events = await logAfter({ 'after-tx-id': first - 1 });
    expect(events).toHaveLength(2);
    expect(events[0]).toMatchObject({
      'xtdb.api/tx-events': [['xtdb.api/put', { tag: 'xtdb/id' }, { tag: 'xtdb/id' }, new Date('2020-01-01')]],
    });
    const withOps = await logAfter({ 'after-tx-id': first - 1, 'with-ops?': true });
    expect(withOps[0]).toMatchObject({
      'xtdb.api/tx-ops': [['xtdb.api/put', { 'xt/id': id, v: 1 }, new Date('2020-01-01')]],
    });
    expect(await logAfter({ 'after-tx-id': first })).toHaveLength(1);
    expect((await wire.get('/tx-log', { params: { 'after-tx-id': 99_999_999 } })).text).toBe('()');
    expect((await wire.get('/tx-log', { params: { 'with-ops?': 'maybe' } })).status).toBe(400);
  });

  test('the latest submitted has an id, the latest completed also a time', async () => {
    const txId = await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${uniquePrefix()}"}]`);
    expect(Object.keys(record(await wire.get('/latest-submitted-tx')))).toEqual(['xtdb.api/tx-id']);
    const completed = record(await wire.get('/latest-completed-tx'));
    expect(Number(completed['xtdb.api/tx-id'])).toBeGreaterThanOrEqual(txId);
    expect(completed['xtdb.api/tx-time']).toEqual(expect.any(Date));
  });
});

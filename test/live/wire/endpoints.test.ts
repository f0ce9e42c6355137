import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readEdn, submitAndWait, type Wire } from '../../support/wire.js';
import { testWire } from '../../support/wire-target.js';
import { uniquePrefix } from '../../support/xtdb.js';

let wire: Wire;
beforeAll(() => {
  wire = testWire();
});
afterAll(() => wire.close());

const record = (text: string): Record<string, unknown> => readEdn(text) as Record<string, unknown>;
const records = (text: string): readonly Record<string, unknown>[] => readEdn(text) as Record<string, unknown>[];

describe('GET /status', () => {
  test('reports the version, the index version and a living indexer', async () => {
    const answer = await wire.get('/status');
    expect(answer.status).toBe(200);
    expect(record(answer.text)).toMatchObject({
      'xtdb.version/version': '1.24.3',
      'xtdb.index/index-version': 22,
      'ingester-failed?': false,
    });
  });
});

describe('GET /db', () => {
  test('nests the transaction beside the valid time', async () => {
    const txId = await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${uniquePrefix()}"}]`);
    const answer = await wire.get('/db', { params: { 'tx-id': txId, 'valid-time': '2030-01-02T03:04:05.678Z' } });
    expect(answer.status).toBe(200);
    expect(record(answer.text)).toEqual({
      'xtdb.api/valid-time': new Date('2030-01-02T03:04:05.678Z'),
      'xtdb.api/tx': { 'xtdb.api/tx-id': txId, 'xtdb.api/tx-time': null },
    });
  });

  test('is 400 out of sync for a transaction the node has not seen, and 400 for a malformed time or id', async () => {
    const ahead = await wire.get('/db', { params: { 'tx-id': 99_999_999 } });
    expect(ahead.status).toBe(400);
    expect(record(ahead.text)).toMatchObject({
      'xtdb.error/error-type': 'node-out-of-sync',
      requested: { 'xtdb.api/tx-id': 99_999_999 },
    });
    expect((await wire.get('/db', { params: { 'valid-time': 'yesterday' } })).status).toBe(400);
    expect((await wire.get('/db', { params: { 'tx-id': '1.5' } })).status).toBe(400);
  });
});

describe('GET /entity', () => {
  test.each([
    ['spaces and quotes', `a "b" 'c' d`],
    ['unicode', 'Grüße 日本 🦀'],
    ['a colon in front', ':not-a-keyword'],
    ['a path with a percent sign', '/tmp/100% done?&=#.txt'],
  ])('reads a string id with %s literally', async (_name, suffix) => {
    const id = uniquePrefix() + suffix;
    await submitAndWait(wire, `[:xtdb.api/put {:xt/id ${JSON.stringify(id)} :n 1}]`);
    const answer = await wire.get('/entity', { params: { eid: id } });
    expect(answer.status).toBe(200);
    expect(record(answer.text)).toEqual({ 'xt/id': id, n: 1 });
  });

  test('keeps keyword, number and text ids apart', async () => {
    const n = Date.now();
    await submitAndWait(
      wire,
      `[:xtdb.api/put {:xt/id :k${n} :is "keyword"}] [:xtdb.api/put {:xt/id ${n} :is "number"}]`,
    );
    expect((await wire.get('/entity', { params: { eid: `:k${n}` } })).status).toBe(404);
    expect(record((await wire.get('/entity', { params: { 'eid-edn': `:k${n}` } })).text)).toMatchObject({
      is: 'keyword',
    });
    expect(record((await wire.get('/entity', { params: { 'eid-edn': String(n) } })).text)).toMatchObject({
      is: 'number',
    });
    expect(record((await wire.get('/entity', { params: { eidJson: String(n) } })).text)).toMatchObject({
      is: 'number',
    });
    expect((await wire.get('/entity', { params: { eid: String(n) } })).status).toBe(404);
  });

  test('reads as of a valid time and as of a transaction', async () => {
    const id = uniquePrefix();
    const first = await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${id}" :v 1} #inst "2020-01-01"]`);
    await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${id}" :v 2} #inst "2021-01-01"]`);
    const v = async (params: Record<string, string | number>): Promise<unknown> =>
      record((await wire.get('/entity', { params: { eid: id, ...params } })).text).v;
    expect(await v({})).toBe(2);
    expect(await v({ 'valid-time': '2020-06-01T00:00:00Z' })).toBe(1);
    expect(await v({ validTime: '2020-06-01T00:00:00.000-00:00' })).toBe(1);
    expect(await v({ 'tx-id': first })).toBe(1);
    expect((await wire.get('/entity', { params: { eid: id, 'valid-time': '2019-01-01' } })).status).toBe(404);
  });

  test('is 404 with an error for an unknown entity, and 400 without a valid id', async () => {
    const unknown = await wire.get('/entity', { params: { eid: 'nobody' } });
    expect([unknown.status, record(unknown.text)]).toEqual([404, { error: 'nobody entity not found' }]);
    const missing = await wire.get('/entity');
    expect([missing.status, record(missing.text)['xtdb.error/error-key']]).toEqual([400, 'missing-eid']);
    expect((await wire.get('/entity', { params: { 'eid-edn': '[1 2]' } })).status).toBe(400);
    expect((await wire.get('/entity', { params: { 'eid-edn': '"cut off' } })).status).toBe(400);
  });

  test('marks values that are entity ids on request', async () => {
    const id = uniquePrefix();
    await submitAndWait(
      wire,
      `[:xtdb.api/put {:xt/id "${id}a" :friend "${id}b" :note "x"}] [:xtdb.api/put {:xt/id "${id}b"}]`,
    );
    const answer = await wire.get('/entity', { params: { eid: `${id}a`, 'link-entities?': true } });
    expect(answer.text).toContain(`:friend #xtdb.http/entity-ref "${id}b"`);
    expect(answer.text).toContain(':note "x"');
    expect(answer.text).toContain(`:xt/id "${id}a"`);
  });
});

describe('GET /entity?history=true', () => {
  const id = uniquePrefix();
  const ids: number[] = [];
  beforeAll(async () => {
    ids.push(await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${id}" :v 1} #inst "2020-01-01"]`));
    ids.push(await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${id}" :v 2} #inst "2021-01-01"]`));
    ids.push(await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${id}" :v 3} #inst "2021-01-01"]`));
    ids.push(await submitAndWait(wire, `[:xtdb.api/delete "${id}" #inst "2022-01-01"]`));
  });
  const history = async (
    params: Record<string, string | number | boolean>,
  ): Promise<readonly Record<string, unknown>[]> => {
    const answer = await wire.get('/entity', { params: { eid: id, history: true, ...params } });
    expect(answer.status).toBe(200);
    expect(answer.text.startsWith('(')).toBe(true);
    return records(answer.text);
  };
  const txIds = (entries: readonly Record<string, unknown>[]): unknown[] =>
    entries.map((entry) => entry['xtdb.api/tx-id']);

  test('lists versions in both orders, the newest of each valid time', async () => {
    expect(txIds(await history({ 'sort-order': 'asc' }))).toEqual([ids[0], ids[2], ids[3]]);
    expect(txIds(await history({ sortOrder: 'desc' }))).toEqual([ids[3], ids[2], ids[0]]);
  });

  test('adds documents, corrections and deletion marks on request', async () => {
    const entries = await history({ 'sort-order': 'asc', 'with-docs': true, 'with-corrections': true });
    expect(txIds(entries)).toEqual([ids[0], ids[1], ids[2], ids[3]]);
    expect(entries.map((entry) => entry['xtdb.api/doc'])).toEqual([
      { 'xt/id': id, v: 1 },
      { 'xt/id': id, v: 2 },
      { 'xt/id': id, v: 3 },
      null,
    ]);
    expect(entries[3]).toMatchObject({ 'xtdb.api/content-hash': { tag: 'xtdb/id', val: '0'.repeat(40) } });
  });

  test('keeps to its bounds: start inclusive, end exclusive', async () => {
    expect(
      txIds(await history({ 'sort-order': 'asc', 'start-valid-time': '2021-01-01', 'end-valid-time': '2022-01-01' })),
    ).toEqual([ids[2]]);
    expect(txIds(await history({ 'sort-order': 'asc', 'end-tx-id': Number(ids[2]) }))).toEqual([ids[0], ids[1]]);
  });

  test('is empty for an unknown entity, and 400 without a sort order or with an unknown one', async () => {
    expect(await history({ 'sort-order': 'asc', eid: 'nobody' })).toEqual([]);
    expect((await wire.get('/entity', { params: { eid: id, history: true } })).status).toBe(400);
    expect((await wire.get('/entity', { params: { eid: id, history: true, 'sort-order': 'sideways' } })).status).toBe(
      400,
    );
    expect((await wire.get('/entity', { params: { eid: id, history: 'perhaps' } })).status).toBe(400);
  });
});

describe('GET /entity-tx', () => {
  test('reports hash and times of the current version, or 404', async () => {
    const id = uniquePrefix();
    const txId = await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${id}"} #inst "2020-01-01"]`);
    const answer = await wire.get('/entity-tx', { params: { eid: id } });
    expect(answer.status).toBe(200);
    expect(answer.headers['last-modified']).toMatch(/GMT$/);
    expect(record(answer.text)).toMatchObject({
      'xt/id': { tag: 'xtdb/id' },
      'xtdb.api/content-hash': { tag: 'xtdb/id' },
      'xtdb.api/tx-id': txId,
      'xtdb.api/valid-time': new Date('2020-01-01'),
    });
    expect((await wire.get('/entity-tx', { params: { eid: 'nobody' } })).status).toBe(404);
    expect((await wire.get('/entity-tx')).status).toBe(400);
  });
});

describe('attributes and paths', () => {
  test('GET /attribute-stats counts documents by attribute', async () => {
    await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${uniquePrefix()}" :wire/counted true}]`);
    const answer = await wire.get('/attribute-stats');
    expect(answer.status).toBe(200);
    expect(record(answer.text)).toMatchObject({ 'xt/id': expect.any(Number) });
  });

  test('an unknown path is 404 and a wrong method 405, both without a body', async () => {
    for (const [status, answer] of [
      [404, await wire.get('/nothing-here')],
      [404, await wire.get('elsewhere')],
      [404, await wire.post('/sparql', 'x')],
      [405, await wire.post('/db', '{}')],
      [405, await wire.get('/submit-tx')],
    ] as const) {
      expect([answer.status, answer.text]).toEqual([status, '']);
    }
  });

  test('the front page leads to /query, and unknown parameters are dropped', async () => {
    const front = await wire.get('');
    expect([front.status, front.headers.location]).toEqual([302, '/_xtdb/query']);
    expect((await wire.get('/db', { params: { 'vaild-time': 'x' } })).status).toBe(200);
  });
});

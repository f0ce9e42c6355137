import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { EDN, errorKey, JSON_TYPE, readEdn, submitAndWait, TRANSIT, type Wire } from '../../support/wire.js';
import { testWire } from '../../support/wire-target.js';
import { uniquePrefix } from '../../support/xtdb.js';

let wire: Wire;
beforeAll(() => {
  wire = testWire();
});
afterAll(() => wire.close());

const ACCEPTED = 202;

/** The top-level map of a transit text, with raw keys and values. */
function transitMap(text: string): ReadonlyMap<unknown, unknown> {
  const [mark, ...parts]: unknown[] = JSON.parse(text);
  expect(mark).toBe('^ ');
  return new Map(Array.from({ length: parts.length / 2 }, (_, at) => [parts[2 * at], parts[2 * at + 1]]));
}

describe('bodies in EDN, transit and JSON', () => {
  test('one document has one content hash in every encoding', async () => {
    const id = uniquePrefix();
    const ids = ['a', 'b', 'c'].map((suffix) => id + suffix);
    const bodies = [
      [EDN, `{:tx-ops [[:xtdb.api/put {:xt/id "same" :n 7 :d 1.5 :t true :z nil :list [1 [2]] :map {"k" "v"}}]]}`],
      [
        TRANSIT,
        '["^ ","~:tx-ops",[["~:xtdb.api/put",["^ ' +
          '","~:xt/id","same","~:n",7,"~:d",1.5,"~:t",true,"~:z",null,"~:list",[1,[2]],"~:map",["^ ","k","v"]]]]]',
      ],
    ] as const;
    const hashes: unknown[] = [];
    for (const [type, body] of bodies) {
      const submitted = await wire.post('/submit-tx', body.replaceAll('same', ids[0] ?? ''), { type });
      expect(submitted.status).toBe(ACCEPTED);
      const txId = (readEdn(submitted.text) as Record<string, number>)['xtdb.api/tx-id'] ?? -1;
      const found = await wire.get('/entity-tx', { params: { eid: ids[0] ?? '', 'await-tx-id': txId } });
      hashes.push((readEdn(found.text) as Record<string, unknown>)['xtdb.api/content-hash']);
    }
    expect(hashes[0]).toEqual(hashes[1]);
    const asJson = JSON.stringify({
      'tx-ops': [['put', { 'xt/id': ids[1], n: 7, d: 1.5, t: true, z: null, list: [1, [2]] }]],
    });
    const json = await wire.post('/submit-tx', asJson, { type: JSON_TYPE, accept: JSON_TYPE });
    expect([json.status, json.type]).toEqual([ACCEPTED, JSON_TYPE]);
    await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${ids[2]}" :n 7}]`);
    const sameInEdn = await submitAndWait(
      wire,
      `[:xtdb.api/match "${ids[1]}" {:xt/id "${ids[1]}" :n 7 :d 1.5 :t true :z nil :list [1 [2]]}] ` +
        `[:xtdb.api/delete "${ids[1]}"]`,
    );
    expect((await wire.get('/tx-committed', { params: { 'tx-id': sameInEdn } })).text).toBe('{:tx-committed? true}');
  });

  test.each([
    ['put', [`put`, { 'xt/id': 'ID' }, '2020-01-01T00:00:00Z', '2021-01-01T00:00:00Z']],
    ['delete', ['delete', 'ID', '2020-01-01T00:00:00Z']],
    ['match', ['match', 'ID', null, '2019-01-01T00:00:00Z']],
    ['evict', ['evict', 'ID']],
  ])('JSON operations: %s', async (_name, op) => {
    const body = JSON.stringify({ 'tx-ops': [op] }).replaceAll('ID', uniquePrefix());
    const submitted = await wire.post('/submit-tx', body, { type: JSON_TYPE, accept: JSON_TYPE });
    expect(submitted.status).toBe(ACCEPTED);
    const { txId } = JSON.parse(submitted.text);
    const done = await wire.get('/tx-committed', { params: { txId, awaitTxId: txId }, accept: JSON_TYPE });
    expect(JSON.parse(done.text)).toEqual({ 'txCommitted?': true });
  });

  test.each([
    ['EDN cut off', EDN, '{:tx-ops [[:xtdb.api/put {:xt/id "a"'],
    ['EDN with something after the form', EDN, '{:tx-ops []} {:tx-ops []}'],
    ['EDN with an unknown tag', EDN, '{:tx-ops [#evil/tag 1]}'],
    ['EDN that would evaluate', EDN, '{:tx-ops #=(+ 1 2)}'],
    ['EDN nested 150 deep', EDN, `{:tx-ops ${'['.repeat(150)}${']'.repeat(150)}}`],
    ['EDN nested 3,000 deep', EDN, `{:tx-ops ${'['.repeat(3_000)}${']'.repeat(3_000)}}`],
    ['EDN of 100,000 discards', EDN, '#_ '.repeat(100_000)],
    ['EDN with a number of a million digits', EDN, `{:tx-ops [${'1'.repeat(1_000_000)}N]}`],
    ['JSON cut off', JSON_TYPE, '{"tx-ops": [["put", {"xt/id": "a"'],
    ['JSON with something after the value', JSON_TYPE, '{"tx-ops": []} []'],
    ['JSON nested 150 deep', JSON_TYPE, `{"tx-ops": ${'['.repeat(150)}${']'.repeat(150)}}`],
    ['JSON nested 3,000 deep', JSON_TYPE, `{"tx-ops": ${'['.repeat(3_000)}${']'.repeat(3_000)}}`],
    ['transit cut off', TRANSIT, '["^ ","~:tx-ops",[["~:xtdb.api/put"'],
    ['transit nested 3,000 deep', TRANSIT, `["^ ","~:tx-ops",${'['.repeat(3_000)}${']'.repeat(3_000)}]`],
    ['transit with a number of a million digits', TRANSIT, `["^ ","~:tx-ops",["~n${'1'.repeat(1_000_000)}"]]`],
  ])('is malformed as %s', async (_name, type, body) => {
    const answer = await wire.post('/submit-tx', body, { type });
    expect([answer.status, readEdn(answer.text)]).toEqual([400, { error: `Malformed "${type}" request.` }]);
  });

  test.each([
    ['an empty body', EDN, ''],
    ['a body of blanks', EDN, '  \n'],
    ['a body that is not a map', EDN, '[1 2]'],
    ['a type nobody decodes', 'text/plain', '{:tx-ops []}'],
    ['no type at all', null, '{:tx-ops []}'],
    ['no operations', EDN, '{:ops []}'],
    ['operations that are not a vector', EDN, '{:tx-ops ()}'],
  ])('does not fit as %s', async (_name, type, body) => {
    const answer = await wire.post('/submit-tx', body, { type });
    expect(answer.status).toBe(400);
    expect(readEdn(answer.text)).toMatchObject({
      type: 'reitit.coercion/request-coercion',
      in: ['request', 'body-params'],
    });
  });

  test.each([
    ['vectors', '[', ']'],
    ['maps', '{"a" ', '}'],
    ['map keys', '{', ' 1}'],
    ['sets', '#{', '}'],
  ])('a document may nest 100 deep in %s and comes back whole', async (_name, open, close) => {
    const id = uniquePrefix();
    const nested = `${open.repeat(100)}1${close.repeat(100)}`;
    await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${id}" :nested ${nested}}]`);
    expect((await wire.get('/entity', { params: { eid: id } })).text).toContain(nested);
  });

  test('a megabyte of text keeps every character', async () => {
    const id = uniquePrefix();
    const text = 'line "quoted" \\ back\t\n\f\b\r end 日本 🦀 ; comment ( [ { #_ '.repeat(20_000);
    const body = JSON.stringify(['^ ', '~:tx-ops', [['~:xtdb.api/put', ['^ ', '~:xt/id', id, '~:text', text]]]]);
    const submitted = await wire.post('/submit-tx', body, { type: TRANSIT, accept: JSON_TYPE });
    const { txId } = JSON.parse(submitted.text);
    const answer = await wire.get('/entity', { params: { eid: id, 'await-tx-id': txId }, accept: JSON_TYPE });
    expect(JSON.parse(answer.text)).toEqual({ 'xt/id': id, text });
    const edn = await wire.get('/entity', { params: { eid: id } });
    expect((readEdn(edn.text) as Record<string, unknown>).text).toBe(text);
  });
});

describe('answers', () => {
  const id = uniquePrefix();
  let txId = -1;
  beforeAll(async () => {
    txId = await submitAndWait(
      wire,
      `[:xtdb.api/put {:xt/id "${id}" :bytes #xtdb/base64 "AQID" :at #inst "2020-01-02T03:04:05.678"
        :instant #xtdb/instant "2020-01-02T03:04:05.678901Z" :day #xtdb/local-date "2020-01-02"
        :uuid #uuid "11111111-2222-3333-4444-555555555555" :kw :a/b :set #{1} :d 1.0 :big 5N :first-name "Ann"}]`,
    );
  });

  test.each([
    [undefined, EDN],
    ['*/*', EDN],
    ['text/html', EDN],
    ['application/json;q=0.2, application/transit+json', TRANSIT],
    ['text/html, application/json;q=0.9, */*;q=0.8', JSON_TYPE],
  ])('Accept %s is answered with %s', async (accept, type) => {
    const answer = await wire.get('/db', accept === undefined ? {} : { accept });
    expect([answer.status, answer.type]).toEqual([200, type]);
  });

  test('EDN keeps types of its own readable', async () => {
    const { text } = await wire.get('/entity', { params: { eid: id } });
    for (const part of [
      ':bytes #xtdb/base64 "AQID"',
      ':at #inst "2020-01-02T03:04:05.678-00:00"',
      ':instant #xtdb/instant "2020-01-02T03:04:05.678901Z"',
      ':day #xtdb/local-date "2020-01-02"',
      ':uuid #uuid "11111111-2222-3333-4444-555555555555"',
      ':kw :a/b',
      ':d 1.0',
      ':big 5N',
    ]) {
      expect(text).toContain(part);
    }
  });

  test('transit carries the same document', async () => {
    const answer = await wire.get('/entity', { params: { eid: id }, accept: TRANSIT });
    const document = transitMap(answer.text);
    expect(document.get('~:first-name')).toBe('Ann');
    expect(document.get('~:at')).toBe(`~m${Date.parse('2020-01-02T03:04:05.678Z')}`);
    expect(document.get('~:bytes')).toEqual(['~#xtdb/base64', 'AQID']);
  });

  test('JSON leaves document keys alone, ends instants at the second and writes bytes as base64', async () => {
    const answer = await wire.get('/entity', { params: { eid: id }, accept: JSON_TYPE });
    expect(JSON.parse(answer.text)).toMatchObject({
      'xt/id': id,
      'first-name': 'Ann',
      at: '2020-01-02T03:04:05Z',
      bytes: 'AQID',
      kw: 'a/b',
      set: [1],
      big: 5,
    });
  });

  test('JSON has camelCase keys without namespace at the top of receipts, histories and logs', async () => {
    const tx = JSON.parse((await wire.get('/await-tx', { params: { txId }, accept: JSON_TYPE })).text);
    expect(tx).toEqual({
      txId: expect.any(Number),
      txTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    });
    const history = await wire.get('/entity', {
      params: { eid: id, history: true, sortOrder: 'asc', withDocs: true },
      accept: JSON_TYPE,
    });
    expect(JSON.parse(history.text)).toEqual([
      {
        txTime: expect.any(String),
        txId,
        validTime: expect.any(String),
        contentHash: expect.any(String),
        doc: expect.objectContaining({ 'first-name': 'Ann' }),
      },
    ]);
    const log = await wire.get('/tx-log', {
      params: { 'after-tx-id': txId - 1, 'with-ops?': true },
      accept: JSON_TYPE,
    });
    expect(JSON.parse(log.text)[0]).toMatchObject({ txId, txOps: [['put', { 'xt/id': id }]] });
    const stats = JSON.parse((await wire.get('/attribute-stats', { accept: JSON_TYPE })).text);
    expect(stats['xt/id']).toEqual(expect.any(Number));
  });

  test('errors come in the encoding that was asked for', async () => {
    const missing = await wire.get('/latest-completed-tx', { params: { 'await-tx-id': 'x' }, accept: JSON_TYPE });
    expect([missing.status, missing.type, JSON.parse(missing.text).type]).toEqual([
      400,
      JSON_TYPE,
      'reitit.coercion/request-coercion',
    ]);
    const transitError = await wire.get('/entity', { accept: TRANSIT });
    expect([transitError.status, transitMap(transitError.text).get('~:xtdb.error/error-key')]).toEqual([
      400,
      '~:missing-eid',
    ]);
  });

  test('an error that echoes an operation can be read by any EDN reader', async () => {
    const answer = await wire.post(
      '/submit-tx',
      '{:tx-ops [[:xtdb.api/put {:xt/id nil :a #xtdb/id "https://example.org" :b #xtdb/base64 "AQID"}]]}',
    );
    expect([answer.status, errorKey(answer)]).toEqual([400, 'invalid-tx-op']);
    expect(answer.text).not.toMatch(/#(?!\{|inst|uuid)/);
  });

  test('a table of rows comes as CSV or TSV on request', async () => {
    const query = `{:find [e n] :where [[e :xt/id "${id}"] [e :first-name n]]}`;
    const csv = await wire.get('/query', { params: { 'query-edn': query }, accept: 'text/csv' });
    expect([csv.status, csv.type, csv.text]).toEqual([200, 'text/csv', `e,n\n${id},Ann\n`]);
    const tsv = await wire.get('/query.tsv', { params: { 'query-edn': query } });
    expect([tsv.type, tsv.text]).toEqual(['text/tsv', `e\tn\n${id}\tAnn\n`]);
    expect(tsv.headers['content-disposition']).toMatch(/^attachment; filename=query/);
  });
});

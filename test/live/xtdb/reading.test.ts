import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { list, sym } from '../../../src/edn/values.js';
import { each, predicate, pull, triple } from '../../../src/xtdb/datalog.js';
import { type StoredDocument, toDocument } from '../../../src/xtdb/documents.js';
import { XtdbError } from '../../../src/xtdb/errors.js';
import { openTestClient, uniquePrefix } from '../../support/xtdb.js';

const client = openTestClient();
afterAll(() => client.close());
const p = uniquePrefix();

const failureOf = async (promise: Promise<unknown>): Promise<XtdbError> => {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(outcome instanceof XtdbError)) throw new Error(`expected an XtdbError, not ${String(outcome)}`);
  return outcome;
};

describe('entities by string id', () => {
  test.each([
    'plain',
    'with space',
    '"quoted"',
    "it's",
    'a+b&c=d?e#f',
    'a/b\\c',
    'é😀',
    ':keyword-like',
    '[1 2]',
    '%20',
    'line\nbreak',
    '\u0000\u001b',
    '{:xt/id 1}',
  ])('return %j as it was put, alone and with others', async (name) => {
    const id = `${p}${name}`;
    const doc = { 'xt/id': id, type: 'file' };
    expect((await client.execute([{ op: 'put', doc }])).outcome).toBe('committed');
    const db = await client.db();
    expect(await db.entity(id)).toEqual(doc);
    expect(await db.entities([id])).toEqual(new Map([[id, doc]]));
    expect((await db.entityTx(id))?.txId).toBeGreaterThanOrEqual(0);
    expect(await db.history(id)).toHaveLength(1);
  });

  test('treat an id that begins with a colon as a string, not a keyword', async () => {
    await client.execute([{ op: 'put', doc: { 'xt/id': `:${p}colon`, type: 'file' } }]);
    expect(await (await client.db()).entity(`:${p}colon`)).toEqual({ 'xt/id': `:${p}colon`, type: 'file' });
    expect(await (await client.db()).entity(`${p}colon`)).toBeUndefined();
  });

  test('return undefined for a missing one, and omit it from a batch', async () => {
    await client.execute([{ op: 'put', doc: { 'xt/id': `${p}there`, type: 'file' } }]);
    const db = await client.db();
    expect(await db.entity(`${p}missing`)).toBeUndefined();
    expect(await db.entityTx(`${p}missing`)).toBeUndefined();
    expect([...(await db.entities([`${p}missing`, `${p}there`, `${p}there`])).keys()]).toEqual([`${p}there`]);
    expect(await db.entities([])).toEqual(new Map());
    expect(await db.history(`${p}missing`, { withDocs: true })).toEqual([]);
  });

  test('return 1,200 documents in three queries, each under its id', async () => {
    const docs = Array.from(
      { length: 1_200 },
      (_, n): StoredDocument => ({ 'xt/id': `${p}many-${n}`, type: 'file', seq: n }),
    );
    await client.execute(docs.map((doc) => ({ op: 'put', doc }) as const));
    const found = await (await client.db()).entities(docs.map((doc) => doc['xt/id']));
    expect(found.size).toBe(1_200);
    for (const doc of docs) expect(found.get(doc['xt/id'])).toEqual(doc);
  });

  test('split a batch whose answer is too large', async () => {
    const docs = Array.from(
      { length: 10 },
      (_, n): StoredDocument => ({ 'xt/id': `${p}big-${n}`, text: 'x'.repeat(40_000) }),
    );
    await client.execute(docs.map((doc) => ({ op: 'put', doc }) as const));
    const small = openTestClient({ maxAnswerBytes: 100_000 });
    try {
      const found = await (await small.db()).entities(docs.map((doc) => doc['xt/id']));
      expect([...found.keys()].sort()).toEqual(docs.map((doc) => doc['xt/id']).sort());
    } finally {
      await small.close();
    }
  });
});

describe('queries', () => {
  const session = `${p}session`;
  const [e, n, s, lo] = [sym('?e'), sym('?n'), sym('?s'), sym('?lo')];
  const steps = Array.from(
    { length: 6 },
    (_, i): StoredDocument => ({ 'xt/id': `${p}step-${i}`, session_ref: session, seq: i, body: ['a', { b: i }] }),
  );
  beforeAll(async () => {
    await client.execute(steps.map((doc) => ({ op: 'put', doc }) as const));
  });

  test('bind arguments, compare, order and limit', async () => {
    const rows = await (await client.db()).query(
      {
        find: [e, n, pull(e)],
        in: [s, lo],
        where: [triple(e, 'session_ref', s), triple(e, 'seq', n), predicate('>=', n, lo)],
        orderBy: [[n, 'desc']],
        limit: 3,
      },
      [session, 1],
    );
    expect(rows.map(([id, seq, document]) => [id, seq, toDocument(document ?? null)])).toEqual(
      [5, 4, 3].map((i) => [`${p}step-${i}`, i, steps[i]]),
    );
  });

  test('return a set although the database returns a bag', async () => {
    const db = await client.db();
    expect(await db.query({ find: [s], in: [s], where: [triple(e, 'session_ref', s)] }, [session])).toEqual([
      [session],
    ]);
    expect(
      await db.query({ find: [list(sym('count'), e)], in: [s], where: [triple(e, 'session_ref', s)] }, [session]),
    ).toEqual([[6]]);
  });

  test('bind a collection', async () => {
    const rows = await (await client.db()).query(
      { find: [e, n], in: [each(e)], where: [triple(e, 'seq', n)], orderBy: [[n, 'asc']] },
      [[`${p}step-2`, `${p}step-0`, `${p}nobody`]],
    );
    expect(rows).toEqual([
      [`${p}step-0`, 0],
      [`${p}step-2`, 2],
    ]);
  });

  test('treat an argument that looks like syntax as a value', async () => {
    const rows = await (await client.db()).query({ find: [e], in: [s], where: [triple(e, 'session_ref', s)] }, [
      '"] [?e :xt/id ?s] [:x "',
    ]);
    expect(rows).toEqual([]);
  });

  test('refuse functions that reach outside the database', async () => {
    const x = sym('?x');
    for (const name of ['slurp', 'clojure.core/slurp', 'clojure.java.shell/sh', 'eval']) {
      const failure = await failureOf(
        (await client.db()).query({ find: [x], in: [s], where: [[list(sym(name), s), x]] }, ['/etc/hostname']),
      );
      expect(failure.code).toBe('bad-request');
    }
  });

  test('return a bad request for a non-query', async () => {
    const failure = await failureOf((await client.db()).query({ find: [e], where: [triple(n, 'seq', s)] }));
    expect(failure.code).toBe('bad-request');
    expect(failure.status).toBe(400);
  });

  test('time out if they are endless, and the client continues', async () => {
    const names = ['?a', '?b', '?c', '?d', '?f', '?g', '?h', '?i'].map((name) => sym(name));
    const endless = { find: names, where: names.map((variable) => triple(variable, 'xt/id')) };
    const db = await client.db();
    expect((await failureOf(db.query(endless, [], { timeoutMs: 300 }))).code).toBe('timeout');
    expect(await db.entity(`${p}step-0`)).toEqual(steps[0]);
  });
});

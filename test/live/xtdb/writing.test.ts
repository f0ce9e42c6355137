import { afterAll, describe, expect, test } from '@jest/globals';
import { XtdbError } from '../../../src/xtdb/errors.js';
import { executeForeign, openTestClient, uniquePrefix } from '../../support/xtdb.js';

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

describe('a transaction', () => {
  test('is submitted, then committed, and visible to its client', async () => {
    const doc = { 'xt/id': `${p}own`, type: 'file', char_count: 3 };
    const receipt = await client.submit([{ op: 'put', doc }]);
    expect(await (await client.db()).entity(`${p}own`)).toEqual(doc);
    expect(await client.awaitOutcome(receipt.txId)).toBe('committed');
    expect(Math.abs(receipt.txTime.getTime() - Date.now())).toBeLessThan(60_000);
  });

  test('with a failing match is aborted as a whole, later operations included', async () => {
    const id = `${p}guarded`;
    await client.execute([{ op: 'put', doc: { 'xt/id': id, status: 'one' } }]);
    const { outcome } = await client.execute([
      { op: 'put', doc: { 'xt/id': `${p}beside`, status: 'lost' } },
      { op: 'match', id, doc: { 'xt/id': id, status: 'other' } },
      { op: 'put', doc: { 'xt/id': id, status: 'two' } },
    ]);
    expect(outcome).toBe('aborted');
    const db = await client.db();
    expect(await db.entity(id)).toEqual({ 'xt/id': id, status: 'one' });
    expect(await db.entity(`${p}beside`)).toBeUndefined();
  });

  test('compares whole documents in any key order', async () => {
    const id = `${p}order`;
    await client.execute([{ op: 'put', doc: { 'xt/id': id, status: 'one', args: { b: 1, a: [1.5, 2] } } }]);
    const { outcome } = await client.execute([
      { op: 'match', id, doc: { args: { a: [1.5, 2], b: 1 }, status: 'one', 'xt/id': id } },
      { op: 'put', doc: { 'xt/id': id, status: 'two' } },
    ]);
    expect(outcome).toBe('committed');
  });

  test('of many racing insert-if-absent exactly one commits', async () => {
    const id = `${p}race`;
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        const { outcome } = await client.execute([
          { op: 'match', id, doc: null },
          { op: 'put', doc: { 'xt/id': id, seq: n } },
        ]);
        return outcome === 'committed' ? [n] : [];
      }),
    );
    const [winner, ...others] = outcomes.flat();
    expect(others).toEqual([]);
    expect(await (await client.db()).entity(id)).toEqual({ 'xt/id': id, seq: winner });
  });

  test('of another writer can delete and evict', async () => {
    const id = `${p}gone`;
    await client.execute([{ op: 'put', doc: { 'xt/id': id, status: 'here' } }]);
    const before = await client.db();
    await executeForeign('delete', id);
    expect(await (await client.db()).entity(id)).toBeUndefined();
    expect(await before.entity(id)).toEqual({ 'xt/id': id, status: 'here' });
    await executeForeign('evict', id);
    expect(await before.entity(id)).toBeUndefined();
    expect(await (await client.db()).history(id, { withDocs: true })).toEqual([]);
  });

  test('has no outcome within the limit if it was never submitted', async () => {
    const latest = await client.latestCompletedTx();
    const failure = await failureOf(client.awaitOutcome((latest?.txId ?? 0) + 1_000_000, { timeoutMs: 200 }));
    expect(failure.code).toBe('timeout');
  });

  test('can stop waiting for its outcome', async () => {
    const controller = new AbortController();
    const waiting = failureOf(client.awaitOutcome(10_000_000, { signal: controller.signal }));
    controller.abort();
    expect((await waiting).code).toBe('aborted');
  });
});

test('is known if it is the latest indexed one', async () => {
  const { receipt } = await client.execute([{ op: 'put', doc: { 'xt/id': `${p}latest`, seq: 1 } }]);
  expect((await client.latestCompletedTx())?.txId).toBeGreaterThanOrEqual(receipt.txId);
});

describe('the node', () => {
  test('reports its version and a running indexer', async () => {
    expect(await client.status()).toEqual({ version: '1.24.3', ingesterFailed: false });
  });
});

describe('a closed client', () => {
  test('answers every call with closed', async () => {
    const other = openTestClient();
    const db = await other.db();
    await other.close();
    await other.close();
    const calls = [
      other.status(),
      other.db(),
      other.submit([{ op: 'match', id: 'x', doc: null }]),
      other.awaitOutcome(1),
      db.entity('x'),
      db.entities(['x']),
    ];
    for (const call of calls) expect((await failureOf(call)).code).toBe('closed');
  });
});

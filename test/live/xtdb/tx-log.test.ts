import { afterAll, describe, expect, test } from '@jest/globals';
import { END_OF_TIME } from '../../../src/xtdb/transactions.js';
import { entityHash } from '../../../src/xtdb/tx-log.js';
import { executeForeign, openTestClient, uniquePrefix } from '../../support/xtdb.js';

const client = openTestClient();
afterAll(() => client.close());
const p = uniquePrefix();

describe('the log of transactions', () => {
  test('names later writes by the hashes of their ids, for ids of any form', async () => {
    const ids = [`${p}short`, `${p}${'middle '.repeat(40)}`, `${p}${'long '.repeat(8_000)}`, `${p}größer, 大きい, 🐘`];
    const { receipt: before } = await client.execute([{ op: 'put', doc: { 'xt/id': `${p}before`, seq: 0 } }]);
    await client.execute(ids.map((id) => ({ op: 'put' as const, doc: { 'xt/id': id, seq: 1 } })));
    const written = await client.log.writtenAfter(before.txId, `${p}before`);
    for (const id of ids) expect(written?.has(entityHash(id))).toBe(true);
    expect(written?.has(entityHash(`${p}before`))).toBe(false);
  });

  test('names deletions and evictions, but no matches and no writes of an aborted transaction', async () => {
    const [deleted, evicted, matched, lost] = ['deleted', 'evicted', 'matched', 'lost'].map(
      (name) => `${p}${name}`,
    ) as [string, string, string, string];
    const { receipt } = await client.execute(
      [deleted, evicted, matched].map((id) => ({ op: 'put' as const, doc: { 'xt/id': id, seq: 1 } })),
    );
    await executeForeign('delete', deleted);
    await executeForeign('evict', evicted);
    const doc = { 'xt/id': matched, seq: 1 };
    await client.execute([
      { op: 'match', id: matched, doc },
      { op: 'put', doc: { 'xt/id': `${p}beside`, seq: 2 } },
    ]);
    const { outcome } = await client.execute([
      { op: 'match', id: matched, doc: null },
      { op: 'put', doc: { 'xt/id': lost, seq: 2 } },
    ]);
    expect(outcome).toBe('aborted');
    const written = await client.log.writtenAfter(receipt.txId, matched);
    const has = (id: string): boolean | undefined => written?.has(entityHash(id));
    expect([deleted, evicted, `${p}beside`, matched, lost].map(has)).toEqual([true, true, true, false, false]);
  });

  test('reports of a first write whether it required an absent entity, then and later', async () => {
    const [guarded, plain, later] = ['guarded', 'plain', 'later'].map((name) => `${p}new-${name}`) as [
      string,
      string,
      string,
    ];
    const doc = (id: string, seq: number) => ({ 'xt/id': id, seq });
    // The write is valid from a later moment, so nothing is valid earlier.
    const { receipt } = await client.execute([{ op: 'put', doc: doc(later, 0), validTime: new Date('2090-01-01') }]);
    await client.execute([
      { op: 'match', id: guarded, doc: null, validTime: END_OF_TIME },
      { op: 'put', doc: doc(guarded, 1) },
      { op: 'put', doc: doc(plain, 1) },
      { op: 'match', id: later, doc: null, validTime: new Date(5) },
      { op: 'put', doc: doc(later, 1) },
    ]);
    await client.execute([guarded, plain].map((id) => ({ op: 'put' as const, doc: doc(id, 2) })));
    const writes = await client.log.writesAfter(receipt.txId);
    expect([guarded, plain, later].map((id) => writes?.get(entityHash(id))?.isNew)).toEqual([true, false, false]);
  });

  test('is empty if it exceeds the client’s limit, so that the caller reads directly', async () => {
    const small = openTestClient({ maxAnswerBytes: 20_000 });
    try {
      const { receipt } = await client.execute([{ op: 'put', doc: { 'xt/id': `${p}first`, seq: 0 } }]);
      await client.execute(
        Array.from({ length: 500 }, (_, i) => ({ op: 'put' as const, doc: { 'xt/id': `${p}many-${i}`, seq: i } })),
      );
      expect(await small.log.writtenAfter(receipt.txId, `${p}first`)).toBeUndefined();
      expect((await client.log.writtenAfter(receipt.txId, `${p}first`))?.has(entityHash(`${p}many-7`))).toBe(true);
    } finally {
      await small.close();
    }
  });

  test('is empty if the entity that checks its hashes is missing', async () => {
    const fresh = openTestClient();
    try {
      const { receipt } = await client.execute([{ op: 'put', doc: { 'xt/id': `${p}one`, seq: 1 } }]);
      expect(await fresh.log.writtenAfter(receipt.txId - 1, `${p}nobody`)).toBeUndefined();
      expect((await fresh.log.writtenAfter(receipt.txId - 1, `${p}one`))?.has(entityHash(`${p}one`))).toBe(true);
    } finally {
      await fresh.close();
    }
  });
});

import { afterAll, describe, expect, test } from '@jest/globals';
import { entityHash } from '../../../src/xtdb/tx-log.js';
import { executeForeign, openTestClient, uniquePrefix } from '../../support/xtdb.js';

const client = openTestClient();
afterAll(() => client.close());
const p = uniquePrefix();

describe('the log of transactions', () => {
  test('names what was written after a transaction by the hashes of the ids, whatever the ids look like', async () => {
    const ids = [`${p}short`, `${p}${'middle '.repeat(40)}`, `${p}${'long '.repeat(8_000)}`, `${p}größer, 大きい, 🐘`];
    const { receipt: before } = await client.execute([{ op: 'put', doc: { 'xt/id': `${p}before`, seq: 0 } }]);
    await client.execute(ids.map((id) => ({ op: 'put' as const, doc: { 'xt/id': id, seq: 1 } })));
    const written = await client.log.writtenAfter(before.txId, `${p}before`);
    for (const id of ids) expect(written?.has(entityHash(id))).toBe(true);
    expect(written?.has(entityHash(`${p}before`))).toBe(false);
  });

  test('names what was deleted and evicted; what was only matched, and what an aborted transaction would have written, it does not', async () => {
    const [deleted, evicted, matched, lost] = ['deleted', 'evicted', 'matched', 'lost'].map((name) => `${p}${name}`) as [
      string,
      string,
      string,
      string,
    ];
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

  test('says nothing where it is larger than what a client takes: whoever asks reads what it was asked for', async () => {
    const small = openTestClient({ maxAnswerBytes: 20_000 });
    try {
      const { receipt } = await client.execute([{ op: 'put', doc: { 'xt/id': `${p}first`, seq: 0 } }]);
      await client.execute(Array.from({ length: 500 }, (_, i) => ({ op: 'put' as const, doc: { 'xt/id': `${p}many-${i}`, seq: i } })));
      expect(await small.log.writtenAfter(receipt.txId, `${p}first`)).toBeUndefined();
      expect((await client.log.writtenAfter(receipt.txId, `${p}first`))?.has(entityHash(`${p}many-7`))).toBe(true);
    } finally {
      await small.close();
    }
  });

  test('says nothing where the entity that its hashes are tried by is not there', async () => {
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

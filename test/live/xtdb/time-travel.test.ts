import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { fromDocument } from '../../../src/xtdb/documents.js';
import { XtdbError } from '../../../src/xtdb/errors.js';
import type { TxReceipt } from '../../../src/xtdb/transactions.js';
import { executeForeign, openTestClient, uniquePrefix } from '../../support/xtdb.js';

const client = openTestClient();
afterAll(() => client.close());
const p = uniquePrefix();

const at = (day: number): Date => new Date(Date.UTC(2024, 0, day, 12, 0, 0, 123));
const id = `${p}versions`;
const version = (n: number) => ({ 'xt/id': id, seq: n });

describe('the past of one entity', () => {
  const receipts: TxReceipt[] = [];
  beforeAll(async () => {
    // Days 1, 3 and 5, a deletion on day 7, then a correction of day 3.
    for (const [n, day] of [
      [1, 1],
      [3, 3],
      [5, 5],
    ] as const) {
      receipts.push((await client.execute([{ op: 'put', doc: version(n), validTime: at(day) }])).receipt);
    }
    receipts.push(await executeForeign('delete', id, at(7)));
    receipts.push(await executeForeign('put', fromDocument(version(33)), at(3), at(5)));
  });

  test.each([
    [0, undefined],
    [1, 1],
    [2, 1],
    [3, 33],
    [4, 33],
    [5, 5],
    [6, 5],
    [7, undefined],
  ])('as of day %d', async (day, seq) => {
    const db = await client.db({ validTime: at(day) });
    expect((await db.entity(id))?.seq).toBe(seq);
    expect((await db.entities([id])).get(id)?.seq).toBe(seq);
  });

  test('before the correction', async () => {
    const before = receipts[3];
    if (before === undefined) throw new Error('no receipt');
    const db = await client.db({ validTime: at(4), txId: before.txId });
    expect(db.basis).toMatchObject({ validTime: at(4), txId: before.txId });
    expect((await db.entity(id))?.seq).toBe(3);
    expect((await client.db({ validTime: at(4) })).basis.txId).toBeGreaterThan(before.txId);
  });

  test('has a history with documents, deletions, corrections and milliseconds', async () => {
    const db = await client.db();
    const entries = await db.history(id, { withDocs: true });
    expect(entries.map((entry) => [entry.validTime.getTime(), entry.document?.seq, entry.deleted, entry.txId])).toEqual(
      [
        [at(1).getTime(), 1, false, receipts[0]?.txId],
        [at(3).getTime(), 3, false, receipts[1]?.txId],
        [at(3).getTime(), 33, false, receipts[4]?.txId],
        [at(5).getTime(), 5, false, receipts[2]?.txId],
        [at(7).getTime(), undefined, true, receipts[3]?.txId],
      ],
    );
    expect(entries[0]?.txTime).toEqual(receipts[0]?.txTime);
    expect((await db.history(id)).map((entry) => [entry.document, entry.deleted])).toEqual(
      entries.map(({ deleted }) => [undefined, deleted]),
    );
    expect(await db.history(id, { withDocs: true, from: at(5) })).toEqual(entries.slice(3));
  });

  test('has the history of its snapshot', async () => {
    const before = receipts[1];
    if (before === undefined) throw new Error('no receipt');
    const entries = await (await client.db({ validTime: at(9), txId: before.txId })).history(id, { withDocs: true });
    expect(entries.map((entry) => entry.document?.seq)).toEqual([1, 3]);
    const early = await (await client.db({ validTime: at(2) })).history(id, { withDocs: true });
    expect(early.map((entry) => entry.document?.seq)).toEqual([1]);
  });

  test('names the current transaction with its hash', async () => {
    const tx = await (await client.db({ validTime: at(4) })).entityTx(id);
    expect(tx).toMatchObject({ txId: receipts[4]?.txId, txTime: receipts[4]?.txTime, validTime: at(3) });
  });
});

describe('a snapshot', () => {
  test('never sees later writes, not even at an earlier valid time', async () => {
    const db = await client.db();
    const late = { 'xt/id': `${p}late`, seq: 1 };
    await client.execute([{ op: 'put', doc: late, validTime: at(1) }]);
    expect(await db.entity(late['xt/id'])).toBeUndefined();
    expect(await db.history(late['xt/id'])).toEqual([]);
    expect(await (await client.db()).entity(late['xt/id'])).toEqual(late);
  });

  test('at another client’s transaction waits until it is indexed', async () => {
    const other = openTestClient();
    try {
      const doc = { 'xt/id': `${p}other`, seq: 1 };
      const { txId } = await other.submit([{ op: 'put', doc }]);
      expect(await (await client.db({ txId })).entity(doc['xt/id'])).toEqual(doc);
    } finally {
      await other.close();
    }
  });

  test('ahead of the log is refused: by transaction time at once, by transaction id after the limit', async () => {
    const future = new Date(Date.now() + 3_600_000);
    await expect(client.db({ txTime: future })).rejects.toMatchObject({ code: 'out-of-sync' });
    const failure = await client.db({ txId: 99_000_000 }, { timeoutMs: 100 }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(XtdbError);
    expect(failure).toMatchObject({ code: 'timeout' });
  });

  test('by transaction time sees that transaction', async () => {
    const { receipt } = await client.execute([{ op: 'put', doc: { 'xt/id': `${p}by-time`, seq: 1 } }]);
    const db = await client.db({ txTime: receipt.txTime });
    expect(db.basis.txTime).toEqual(receipt.txTime);
    expect(await db.entity(`${p}by-time`)).toEqual({ 'xt/id': `${p}by-time`, seq: 1 });
  });
});

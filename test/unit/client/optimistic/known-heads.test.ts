import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type KnownHead, KnownHeads } from '../../../../src/client/optimistic/known-heads.js';
import { type ObjectId, objectId } from '../../../../src/objects/ids.js';
import { OwnTransactions } from '../../../../src/store/write-path.js';

const ids = ['a', 'b', 'c'].map((name) => objectId(name));
const head = (name: string, validTime: number): KnownHead => ({
  hash: name as never,
  gone: false,
  validTime,
  metadata: undefined,
});

/** A log with the writer and the object of each transaction. */
const logs = fc.array(fc.record({ ours: fc.boolean(), id: fc.constantFrom(...ids), delay: fc.nat(4) }), {
  minLength: 1,
  maxLength: 20,
});

describe('the newest versions that a process knows', () => {
  test('equal the log at their basis, for any order of outcomes and any time of reading', () => {
    fc.assert(
      fc.property(logs, fc.array(fc.nat(20)), (log, reads) => {
        const own = new OwnTransactions();
        const known = new KnownHeads(own);
        const at = (txId: number): ReadonlyMap<ObjectId, KnownHead> =>
          new Map(log.slice(0, txId + 1).map(({ id }, i) => [id, head(`version ${i}`, i)]));
        const check = (): void => {
          const { basis } = known;
          if (basis !== undefined) for (const id of ids) expect(known.at(id)).toEqual(at(basis).get(id));
        };
        const told = log
          .flatMap(({ ours, id, delay }, txId) => (ours ? [{ txId, id, when: txId + delay }] : []))
          .toSorted((a, b) => a.when - b.when);
        for (let now = 0; now < log.length + 5; now++) {
          if (reads.includes(now) || now === 0)
            known.read({
              txId: Math.min(now, log.length - 1),
              asked: new Set(ids),
              heads: at(Math.min(now, log.length - 1)),
            });
          check();
          for (const { txId, id } of told.filter(({ when }) => when === now)) {
            own.add(txId);
            known.wrote(txId, { heads: new Map([[id, head(`version ${txId}`, txId)]]), readAt: txId - 1 });
            check();
            expect(known.newest(id)?.validTime).toBeGreaterThanOrEqual(txId);
          }
        }
        if (log.slice(1).every(({ ours }) => ours)) expect(known.basis).toBe(log.length - 1);
      }),
    );
  });

  test('take the later transaction of two versions valid from the same moment, in any order of outcomes', () => {
    const [id] = ids as [ObjectId];
    for (const order of [
      [7, 8],
      [8, 7],
    ]) {
      const known = new KnownHeads(new OwnTransactions());
      known.read({ txId: 5, asked: new Set(), heads: new Map() });
      for (const txId of order) known.wrote(txId, { heads: new Map([[id, head(`version ${txId}`, 1)]]), readAt: 5 });
      expect(known.newest(id)?.hash).toBe('version 8');
    }
  });

  test('ignore a decision from before a foreign write', () => {
    const own = new OwnTransactions();
    const known = new KnownHeads(own);
    known.read({ txId: 5, asked: new Set(), heads: new Map() });
    own.add(6);
    // Decided at 3. The writers of 4 and 5 are unknown, and the object was not read.
    known.wrote(6, { heads: new Map([[ids[0] as ObjectId, head('ours', 1)]]), readAt: 3 });
    expect([known.basis, known.isStale, known.at(ids[0] as ObjectId)]).toEqual([5, true, undefined]);
    expect(known.newest(ids[0] as ObjectId)?.hash).toBe('ours');
    known.read({ txId: 7, asked: new Set(ids), heads: new Map([[ids[0] as ObjectId, head('theirs', 2)]]) });
    expect([known.isStale, known.newest(ids[0] as ObjectId)?.hash]).toEqual([false, 'theirs']);
  });

  test('take the last of two versions of this process, even of an object that was not read', () => {
    const [own, [id]] = [new OwnTransactions(), ids as [ObjectId]];
    const known = new KnownHeads(own);
    known.read({ txId: 5, asked: new Set(), heads: new Map() });
    // Another process wrote 6.
    for (const txId of [7, 8]) own.add(txId);
    known.wrote(7, { heads: new Map([[id, head('first', 7)]]), readAt: 6 });
    known.wrote(8, { heads: new Map([[id, head('second', 8)]]), readAt: 7 });
    known.read({ txId: 8, asked: new Set(), heads: new Map() });
    expect([known.isStale, known.at(id)?.hash]).toEqual([false, 'second']);
  });

  test('need no new read for a write of another session of this process, and do not keep it', () => {
    const [own, [theirs, mine]] = [new OwnTransactions(), ids as [ObjectId, ObjectId]];
    const known = new KnownHeads(own, (id) => id === mine);
    known.read({ txId: 5, asked: new Set([mine]), heads: new Map() });
    for (const txId of [7, 9]) own.add(txId);
    known.wrote(7, { heads: new Map([[theirs, head('theirs', 7)]]), readAt: 6 });
    known.read({ txId: 8, asked: new Set([mine]), heads: new Map() });
    expect([known.isStale, known.at(theirs)]).toEqual([false, undefined]);
    known.wrote(9, { heads: new Map([[theirs, head('older', 3)]]), readAt: 6 });
    expect([known.isStale, known.basis]).toEqual([true, 8]);
  });

  test('fall behind if the outcome of a write of this process stays unknown, and are bounded', () => {
    const [own, [id]] = [new OwnTransactions(), ids as [ObjectId]];
    const known = new KnownHeads(own);
    known.read({ txId: 0, asked: new Set(), heads: new Map() });
    own.add(1);
    const write = (from: number, to: number): void => {
      for (let txId = from; txId <= to; txId++) {
        own.add(txId);
        known.wrote(txId, { heads: new Map([[id, head(`version ${txId}`, txId)]]), readAt: txId - 1 });
      }
    };
    write(2, 100);
    expect([known.basis, known.isBehind, known.isStale]).toEqual([0, true, false]);
    known.read({ txId: 90, asked: new Set([id]), heads: new Map([[id, head('version 90', 90)]]) });
    expect([known.basis, known.isBehind, known.at(id)?.hash]).toEqual([100, false, 'version 100']);
    write(102, 1_102);
    // Shows nothing that may be older than the forgotten version.
    expect([known.basis, known.isStale, known.newest(id)]).toEqual([undefined, true, undefined]);
    known.read({ txId: 1_000, asked: new Set([id]), heads: new Map([[id, head('version 1000', 1_000)]]) });
    expect(known.newest(id)).toBeUndefined();
    known.read({ txId: 1_102, asked: new Set([id]), heads: new Map([[id, head('version 1102', 1_102)]]) });
    expect(known.at(id)?.hash).toBe('version 1102');
  });
});

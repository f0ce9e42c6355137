import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type KnownHead, KnownHeads } from '../../../src/client/known-heads.js';
import { type ObjectId, objectId } from '../../../src/objects/ids.js';
import { OwnTransactions } from '../../../src/store/own-transactions.js';

const ids = ['a', 'b', 'c'].map((name) => objectId(name));
const head = (name: string, validTime: number): KnownHead => ({ hash: name as never, gone: false, validTime, metadata: undefined });

/** A log: who wrote which object in each transaction. */
const logs = fc.array(fc.record({ ours: fc.boolean(), id: fc.constantFrom(...ids), delay: fc.nat(4) }), { minLength: 1, maxLength: 20 });

describe('what a process knows of the newest versions', () => {
  test('at its basis it is what the log says, in whatever order outcomes come, whenever it is read', () => {
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
          if (reads.includes(now) || now === 0) known.read(Math.min(now, log.length - 1), new Set(ids), at(Math.min(now, log.length - 1)));
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

  test('what was decided before somebody else wrote does not count', () => {
    const own = new OwnTransactions();
    const known = new KnownHeads(own);
    known.read(5, new Set(), new Map());
    own.add(6);
    // Decided at 3; who wrote 4 and 5 is not known, and the object was not asked for.
    known.wrote(6, { heads: new Map([[ids[0] as ObjectId, head('ours', 1)]]), readAt: 3 });
    expect([known.basis, known.isStale, known.at(ids[0] as ObjectId)]).toEqual([5, true, undefined]);
    expect(known.newest(ids[0] as ObjectId)?.hash).toBe('ours');
    known.read(7, new Set(ids), new Map([[ids[0] as ObjectId, head('theirs', 2)]]));
    expect([known.isStale, known.newest(ids[0] as ObjectId)?.hash]).toEqual([false, 'theirs']);
  });
});

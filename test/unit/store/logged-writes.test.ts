import { describe, expect, test } from '@jest/globals';
import { hashText } from '../../../src/objects/hashes.js';
import { objectId, sessionId } from '../../../src/objects/ids.js';
import { LoggedWrites } from '../../../src/store/logged-writes.js';
import { stepId } from '../../../src/store/step-part.js';
import { chunkId, chunkListId } from '../../../src/store/texts.js';
import { entityHash, type LoggedWrite } from '../../../src/xtdb/tx-log.js';

const at = (validTime: number, txId: number) => ({ validTime: new Date(validTime), txId });

/** The writes of an entity, with these as the first and the last. */
const written = (first: readonly [validTime: number, txId: number], last = first, isKept = true): LoggedWrite => ({
  ...at(...last),
  txTime: new Date(0),
  first: at(...first),
  isKept,
  isNew: false,
});

const logged = (writes: Readonly<Record<string, LoggedWrite>>, earlier: readonly string[] | null = []) =>
  new LoggedWrites(
    9,
    new Map(Object.entries(writes).map(([id, write]) => [entityHash(id), write])),
    earlier === null ? undefined : new Set(earlier),
  );

describe('documents according to the transaction log', () => {
  const step = stepId(sessionId('s'), 1);
  const file = objectId('file');

  test('are unchanged since their last write, and unknown before the log', () => {
    const writes = logged({ file: written([5, 10], [6, 12]) });
    expect(writes.isUnchanged('file', 12)).toBe(true);
    expect(writes.isUnchanged('file', 11)).toBe(false);
    expect(writes.isUnchanged('other', 9)).toBe(true);
    expect(writes.isUnchanged('other', 8)).toBe(false);
    expect(writes.isUnchanged('other', undefined)).toBe(false);
  });

  test('exist from their first write if none was ended or removed', () => {
    const writes = logged({ [step]: written([5, 10], [6, 12]) });
    expect(writes.isThere(step, at(5, 10))).toBe(true);
    expect(writes.isThere(step, at(5, 9))).toBe(false);
    // Known by then but valid later; not written; from before the log.
    expect(writes.isThere(step, at(4, 10))).toBeUndefined();
    expect(writes.isThere('other', at(5, 10))).toBeUndefined();
    expect(writes.isThere(step, at(5, 8))).toBeUndefined();
    expect(logged({ [step]: written([5, 10], [6, 12], false) }).isThere(step, at(5, 10))).toBeUndefined();
  });

  test('equal their current form if they were written once', () => {
    const [once, twice] = [logged({ [step]: written([5, 10]) }), logged({ [step]: written([5, 10], [6, 10]) })];
    expect([once.isAsNow(step, at(5, 10)), once.isAsNow(step, at(5, 9)), twice.isAsNow(step, at(6, 10))]).toEqual([
      true,
      false,
      undefined,
    ]);
    expect(logged({ [step]: written([5, 10], [5, 12]) }).isAsNow(step, at(5, 12))).toBeUndefined();
    expect(once.isAsNow('other', at(5, 10))).toBeUndefined();
  });

  test('are not treated as absent if they predate the log', () => {
    expect(logged({ [step]: written([5, 10]) }, [step]).isThere(step, at(5, 9))).toBeUndefined();
    expect([logged({}).isUnwritten(step), logged({}, [step]).isUnwritten(step)]).toEqual([true, false]);
    expect(logged({ [step]: written([5, 10]) }).isUnwritten(step)).toBe(false);
  });

  test('are absent before a write to a free id, even if it existed before the log; others stay unknown', () => {
    const fresh = { ...written([5, 10]), isNew: true };
    expect(logged({ [step]: fresh }, null).isThere(step, at(5, 9))).toBe(false);
    expect(logged({ [step]: fresh }, null).isThere(step, at(5, 10))).toBe(true);
    expect(logged({ [step]: written([5, 10]) }, null).isThere(step, at(5, 9))).toBeUndefined();
    expect([logged({}, null).isUnwritten(step), logged({ [step]: fresh }, null).isUnwritten(step)]).toEqual([
      true,
      false,
    ]);
  });

  test('count as the text of a holder only if they existed unchanged at its write', () => {
    const hash = hashText('text');
    const [chunk, list] = [chunkId(hash), chunkListId(hash)];
    const holder = written([5, 10]);
    expect(logged({ file: holder, [chunk]: written([0, 10]) }).isTextOf(hash, file)).toBe(true);
    expect(logged({ file: holder }).isTextOf(hash, file)).toBe(true);
    // Written again or later, valid only later, removed in between, in several parts, or after a
    // holder from before the log.
    expect(logged({ file: holder, [chunk]: written([0, 10], [0, 11]) }).isTextOf(hash, file)).toBe(false);
    expect(logged({ file: holder, [chunk]: written([6, 10]) }).isTextOf(hash, file)).toBe(false);
    expect(logged({ file: holder, [chunk]: written([0, 10], [0, 10], false) }).isTextOf(hash, file)).toBe(false);
    expect(logged({ file: holder, [list]: written([0, 10]) }).isTextOf(hash, file)).toBe(false);
    expect(logged({ [chunk]: written([0, 10]) }).isTextOf(hash, file)).toBe(false);
  });
});

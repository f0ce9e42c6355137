import { describe, expect, test } from '@jest/globals';
import { hashText } from '../../../src/objects/hashes.js';
import { objectId, sessionId } from '../../../src/objects/ids.js';
import { LoggedWrites } from '../../../src/store/logged-writes.js';
import { stepId } from '../../../src/store/step-part.js';
import { chunkId, chunkListId } from '../../../src/store/texts.js';
import { entityHash, type LoggedWrite } from '../../../src/xtdb/tx-log.js';

const at = (validTime: number, txId: number) => ({ validTime: new Date(validTime), txId });

/** An entity's writes of which the first and the last are these. */
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

describe('what the log of transactions tells of documents', () => {
  const step = stepId(sessionId('s'), 1);
  const file = objectId('file');

  test('they are unchanged since their last write, and nothing is known from before the log', () => {
    const writes = logged({ file: written([5, 10], [6, 12]) });
    expect(writes.isUnchanged('file', 12)).toBe(true);
    expect(writes.isUnchanged('file', 11)).toBe(false);
    expect(writes.isUnchanged('other', 9)).toBe(true);
    expect(writes.isUnchanged('other', 8)).toBe(false);
    expect(writes.isUnchanged('other', undefined)).toBe(false);
  });

  test('they are there from their first write on, if none was ended or removed', () => {
    const writes = logged({ [step]: written([5, 10], [6, 12]) });
    expect(writes.isThere(step, at(5, 10))).toBe(true);
    expect(writes.isThere(step, at(5, 9))).toBe(false);
    // Known by then, but of a time after it; not written; from before the log.
    expect(writes.isThere(step, at(4, 10))).toBeUndefined();
    expect(writes.isThere('other', at(5, 10))).toBeUndefined();
    expect(writes.isThere(step, at(5, 8))).toBeUndefined();
    expect(logged({ [step]: written([5, 10], [6, 12], false) }).isThere(step, at(5, 10))).toBeUndefined();
  });

  test('they stand as they do now if they were written once', () => {
    const [once, twice] = [logged({ [step]: written([5, 10]) }), logged({ [step]: written([5, 10], [6, 10]) })];
    expect([once.isAsNow(step, at(5, 10)), once.isAsNow(step, at(5, 9)), twice.isAsNow(step, at(6, 10))]).toEqual([true, false, undefined]);
    expect(logged({ [step]: written([5, 10], [5, 12]) }).isAsNow(step, at(5, 12))).toBeUndefined();
    expect(once.isAsNow('other', at(5, 10))).toBeUndefined();
  });

  test('one that was there before the log is not taken as absent', () => {
    expect(logged({ [step]: written([5, 10]) }, [step]).isThere(step, at(5, 9))).toBeUndefined();
    expect([logged({}).isUnwritten(step), logged({}, [step]).isUnwritten(step)]).toEqual([true, false]);
    expect(logged({ [step]: written([5, 10]) }).isUnwritten(step)).toBe(false);
  });

  test('one that was written where there was none is absent before, whatever was there before the log; where nobody asked, others are not', () => {
    const fresh = { ...written([5, 10]), isNew: true };
    expect(logged({ [step]: fresh }, null).isThere(step, at(5, 9))).toBe(false);
    expect(logged({ [step]: fresh }, null).isThere(step, at(5, 10))).toBe(true);
    expect(logged({ [step]: written([5, 10]) }, null).isThere(step, at(5, 9))).toBeUndefined();
    expect([logged({}, null).isUnwritten(step), logged({ [step]: fresh }, null).isUnwritten(step)]).toEqual([true, false]);
  });

  test('a text is one of its holder only if it was there as it is when that was written', () => {
    const hash = hashText('text');
    const [chunk, list] = [chunkId(hash), chunkListId(hash)];
    const holder = written([5, 10]);
    expect(logged({ file: holder, [chunk]: written([0, 10]) }).isTextOf(hash, file)).toBe(true);
    expect(logged({ file: holder }).isTextOf(hash, file)).toBe(true);
    // Written again or later, true only later, removed in between, in several parts, or after a holder from before the log.
    expect(logged({ file: holder, [chunk]: written([0, 10], [0, 11]) }).isTextOf(hash, file)).toBe(false);
    expect(logged({ file: holder, [chunk]: written([6, 10]) }).isTextOf(hash, file)).toBe(false);
    expect(logged({ file: holder, [chunk]: written([0, 10], [0, 10], false) }).isTextOf(hash, file)).toBe(false);
    expect(logged({ file: holder, [list]: written([0, 10]) }).isTextOf(hash, file)).toBe(false);
    expect(logged({ [chunk]: written([0, 10]) }).isTextOf(hash, file)).toBe(false);
  });
});

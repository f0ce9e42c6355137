import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type ObjectId, objectId } from '../../../src/objects/ids.js';
import { EMPTY_SETS, foldSets, type SessionSets, type SetChanges } from '../../../src/objects/sets.js';
import { applyChanges } from '../../support/plain-folds.js';

const ids = (...names: string[]) => names.map(objectId);
const id = fc.nat(9).map((n) => objectId(`o${n}`));
const list = fc.array(id, { maxLength: 4 });
const changes: fc.Arbitrary<SetChanges> = fc.record(
  { index: list, activate: list, deactivate: list, pin: list, unpin: list },
  { requiredKeys: [] },
);

/** Changes that are always valid: active or pinned ids enter the index with them. */
const lawful = changes.map((change) => ({
  ...change,
  index: [...(change.index ?? []), ...(change.activate ?? []), ...(change.pin ?? [])],
}));
const subset = (inner: readonly ObjectId[], outer: readonly ObjectId[]) => inner.every((one) => outer.includes(one));

describe('changes of the sets (decision D1)', () => {
  test('keep active and pinned within the index, which only grows at its end, without duplicates', () => {
    fc.assert(
      fc.property(fc.array(lawful, { maxLength: 12 }), (list) => {
        let sets: SessionSets = EMPTY_SETS;
        for (const change of list) {
          const frozen = JSON.stringify(sets);
          const after = applyChanges(sets, change);
          expect(JSON.stringify(sets)).toBe(frozen);
          expect(subset(after.active, after.index) && subset(after.pinned, after.index)).toBe(true);
          expect(after.index.slice(0, sets.index.length)).toEqual(sets.index);
          for (const set of [after.index, after.active, after.pinned]) expect(new Set(set).size).toBe(set.length);
          expect(subset(change.activate ?? [], after.active) && subset(change.pin ?? [], after.pinned)).toBe(true);
          for (const gone of change.deactivate ?? [])
            expect(after.active.includes(gone)).toBe((change.activate ?? []).includes(gone));
          sets = after;
        }
      }),
    );
  });

  test('give the same sets one by one as in one fold', () => {
    fc.assert(
      fc.property(fc.array(lawful, { maxLength: 12 }), (list) => {
        expect(foldSets(EMPTY_SETS, list)).toEqual(list.reduce(applyChanges, EMPTY_SETS));
      }),
    );
  });

  test('are refused in both ways if they activate or pin an id outside the index', () => {
    for (const change of [{ activate: ids('x') }, { pin: ids('x') }]) {
      expect(() => applyChanges(EMPTY_SETS, change)).toThrow(/"x"/);
      expect(() => foldSets(EMPTY_SETS, [change])).toThrow(/"x"/);
    }
  });

  test('apply removals before additions: an id in both moves to the end', () => {
    const sets = { index: ids('a', 'b'), active: ids('a', 'b'), pinned: ids('a', 'b') };
    const both = { deactivate: ids('a'), activate: ids('a'), unpin: ids('b', 'a'), pin: ids('b') };
    expect(applyChanges(sets, both)).toEqual({ index: ['a', 'b'], active: ['b', 'a'], pinned: ['b'] });
    expect(applyChanges(sets, {})).toEqual(sets);
    expect(applyChanges(sets, { activate: ids('a'), pin: ids('a'), index: ids('a') })).toEqual(sets);
  });
});

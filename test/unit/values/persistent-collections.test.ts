import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PersistentSet } from '../../../src/values/persistent-collections.js';

const value = fc.nat(15);
/** One change. `back` says how many states before the newest it begins. */
const change = fc.record({
  leaving: fc.array(value, { maxLength: 4 }),
  coming: fc.array(value, { maxLength: 4 }),
  back: fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(6) }),
});

/** Applies the same change to a native set. */
function changed(
  before: ReadonlySet<number>,
  leaving: readonly number[],
  coming: readonly number[],
): ReadonlySet<number> {
  const after = new Set(before);
  for (const one of leaving) after.delete(one);
  for (const one of coming) after.add(one);
  return after;
}

interface Pair {
  readonly ours: PersistentSet<number>;
  readonly plain: ReadonlySet<number>;
}

function expectSame({ ours, plain }: Pair): void {
  const values = [...plain];
  expect([...ours]).toEqual(values);
  expect(ours.size).toBe(values.length);
  for (let one = 0; one <= 15; one++) expect(ours.has(one)).toBe(plain.has(one));
  for (const from of [0, 1, 3]) expect(ours.toArray(from)).toEqual(values.slice(from));
  for (const count of [0, 1, 3, 99]) expect(ours.newest(count)).toEqual(values.toReversed().slice(0, count));
}

describe('a persistent set', () => {
  test('equals a native set at every state, after any later or branching changes', () => {
    fc.assert(
      fc.property(fc.array(value, { maxLength: 5 }), fc.array(change, { maxLength: 120 }), (first, changes) => {
        const states: Pair[] = [{ ours: PersistentSet.from(first), plain: new Set(first) }];
        for (const { leaving, coming, back } of changes) {
          const { ours, plain } = states.at(-1 - Math.min(back, states.length - 1)) as Pair;
          states.push({ ours: ours.with(leaving, coming), plain: changed(plain, leaving, coming) });
          expectSame(states.at(-1) as Pair);
        }
        for (const state of states) expectSame(state);
      }),
    );
  });

  test('returns itself for an empty change', () => {
    const set = PersistentSet.from([1, 2]);
    expect(set.with([3], [1])).toBe(set);
    expect([...set.with([1], [1])]).toEqual([2, 1]);
  });
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PersistentList } from '../../../src/values/persistent-collections.js';

/** One change. `back` says how many states before the newest it begins. */
const change = fc.record({
  more: fc.array(fc.nat(9), { maxLength: 3 }),
  back: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(6) }),
});

interface Pair {
  readonly ours: PersistentList<number>;
  readonly plain: readonly number[];
}

function expectSame({ ours, plain }: Pair): void {
  expect([...ours]).toEqual(plain);
  expect([ours.size, ours.first(), ours.last()]).toEqual([plain.length, plain[0], plain.at(-1)]);
  for (let place = 0; place <= plain.length; place++) expect(ours.get(place)).toBe(plain[place]);
  for (const from of [0, 2]) expect(ours.toArray(from)).toEqual(plain.slice(from));
  for (const one of [0, 5]) {
    expect(ours.findLastIndex((item) => item <= one)).toBe(plain.findLastIndex((item) => item <= one));
    expect(ours.findLast((item) => item >= one)).toBe(plain.findLast((item) => item >= one));
  }
}

describe('a persistent list', () => {
  test('equals an array at every state, after any later or branching appends', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9), { maxLength: 4 }), fc.array(change, { maxLength: 60 }), (first, changes) => {
        const states: Pair[] = [{ ours: PersistentList.from(first), plain: first }];
        for (const { more, back } of changes) {
          const { ours, plain } = states.at(-1 - Math.min(back, states.length - 1)) as Pair;
          states.push({ ours: ours.concat(more), plain: [...plain, ...more] });
        }
        for (const state of states) expectSame(state);
      }),
    );
  });

  test('returns undefined outside its range', () => {
    expect(PersistentList.from([1]).get(-1)).toBeUndefined();
    expect(PersistentList.from<number>([]).last()).toBeUndefined();
  });
});

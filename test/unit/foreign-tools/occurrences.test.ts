import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { occurrences, replaced } from '../../../src/foreign-tools/text-edits.js';
import { cpuMsOf } from '../../support/cpu-time.js';

function plainly(text: string, wanted: string, overlapping: boolean): readonly number[] {
  const found: number[] = [];
  for (let at = 0; at + wanted.length <= text.length; ) {
    const here = text.slice(at, at + wanted.length) === wanted;
    if (here) found.push(at);
    at += here && !overlapping ? wanted.length : 1;
  }
  return found;
}

/** Texts of few letters with many repetitions, where a search may err. */
const WORD = fc
  .array(fc.constantFrom('a', 'b', 'é', '\n'), { minLength: 1, maxLength: 6 })
  .map((letters) => letters.join(''));
const TEXT = fc
  .array(fc.tuple(WORD, fc.nat(30)), { maxLength: 8 })
  .map((parts) => parts.map(([word, times]) => word.repeat(times)).join(''));

test('finds the same places as a comparison at each position', () => {
  fc.assert(
    fc.property(
      TEXT,
      TEXT,
      fc.nat(),
      fc.integer({ min: 1, max: 120 }),
      fc.boolean(),
      (before, after, from, length, overlapping) => {
        const text = before + after + before;
        const wanted = text.slice(from % (text.length + 1)).slice(0, length);
        fc.pre(wanted !== '');
        expect([...occurrences(text, wanted, { overlapping })]).toEqual(plainly(text, wanted, overlapping));
      },
    ),
    { numRuns: 3000 },
  );
});

test('finds all places in texts of 33 to 60 letters a and b', () => {
  const bits = fc
    .array(fc.constantFrom('a', 'aab', 'aaaaaaaaaab'), { minLength: 3, maxLength: 60 })
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(bits, bits, fc.integer({ min: 33, max: 60 }), fc.boolean(), (one, other, length, overlapping) => {
      const text = other + one + one + other + one;
      const wanted = one.padEnd(length, one).slice(0, length);
      expect([...occurrences(text, wanted, { overlapping })]).toEqual(plainly(text, wanted, overlapping));
    }),
    { numRuns: 3000 },
  );
});

test('replaces every place in linear time and refuses an oversized result', () => {
  const text = 'a'.repeat(1_000_000);
  const all = (from: string, to: string) => replaced(text, [{ from, to, all: true }]);
  expect(cpuMsOf(() => expect(all(`b${'a'.repeat(100_000)}`, '')).toBeUndefined())).toBeLessThan(10_000);
  expect(all('aa', 'b')).toBe('b'.repeat(500_000));
  expect(all('a', 'b'.repeat(1000))).toBeUndefined();
});

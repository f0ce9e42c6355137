import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { commonBytes, commonLength, commonLengthFrom } from '../../../src/values/common-length.js';

/** Two texts, mostly with a common beginning. */
const pair = fc
  .tuple(fc.string({ unit: 'binary', maxLength: 300 }), fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }))
  .map(([same, a, b]): readonly [string, string] => [same + a, same + b]);

describe('the common beginning of two texts or pieces', () => {
  test('is as long as a comparison of single units finds', () => {
    fc.assert(
      fc.property(pair, ([a, b]) => {
        let units = 0;
        while (units < a.length && a[units] === b[units]) units += 1;
        expect(commonLength(a, b)).toBe(units);
        expect(commonLengthFrom({ text: `\u{1f600}${a}`, at: 2 }, { text: `ab\n${b}`, at: 3 })).toBe(units);
        const [x, y] = [Buffer.from(a), Buffer.from(b)];
        let bytes = 0;
        while (bytes < x.length && x[bytes] === y[bytes]) bytes += 1;
        expect(commonBytes(x, y)).toBe(bytes);
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ['', '', 0],
    ['a', '', 0],
    ['', 'a', 0],
    ['same', 'same', 4],
    ['same', 'same and more', 4],
    ['same and more', 'same', 4],
    ['x', 'y', 0],
  ])('%j and %j', (a, b, expected) => {
    expect([commonLength(a, b), commonBytes(Buffer.from(a), Buffer.from(b))]).toEqual([expected, expected]);
  });
});

import { describe, expect, test } from '@jest/globals';
import { GrowingCount } from '../../../../src/lab/replay/context-measure.js';

/** Counts words, and the amount of text passed to it. */
function counter() {
  let given = 0;
  const count = new GrowingCount((text) => {
    given += text.length;
    return text.split(/\s+/).filter((word) => word !== '').length;
  });
  return { of: (text: string) => count.of(text), given: () => given };
}

const lines = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, i) => `line number ${from + i}`).join('\n');

describe('counting growing texts', () => {
  test('returns the same as counting them whole', () => {
    const { of } = counter();
    for (const text of [lines(0, 500), lines(0, 900), lines(0, 3), '', lines(200, 400), lines(0, 900)]) {
      expect(of(text)).toBe(text.split(/\s+/).filter((word) => word !== '').length);
    }
  });

  test('reads the new end only', () => {
    const { of, given } = counter();
    of(lines(0, 1_000));
    const before = given();
    of(lines(0, 1_010));
    expect(given() - before).toBeLessThan(2_000);
  });

  test('reads again from the first change', () => {
    const { of } = counter();
    of(lines(0, 1_000));
    expect(of(`${lines(0, 500)}\nmore words here\n${lines(500, 1_000)}`)).toBe(3_003);
  });
});

import { describe, expect, test } from '@jest/globals';
import { partsText } from '../../../src/restore/restore-plan.js';

describe('the parts of a file that calls read', () => {
  test('are named in the order of the file, and those that overlap or touch are one', () => {
    const parts = [
      { from: 530, to: 690 },
      { from: 1, to: 220 },
      { from: 200, to: 260 },
      { from: 261, to: 300 },
    ];
    expect(partsText(parts)).toBe('lines 1-300, 530-690');
    expect(partsText([...parts, { from: 600, to: undefined }])).toBe('lines 1-300, 530-');
  });

  test('are counted beyond the first four', () =>
    expect(partsText([10, 20, 30, 40, 50].map((from) => ({ from, to: from })))).toBe(
      'lines 10-10, 20-20, 30-30, 40-40 and 1 more',
    ));

  test('have no line numbers if no call named any', () => expect(partsText([])).toBe('a part'));
});

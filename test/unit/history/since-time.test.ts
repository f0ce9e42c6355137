import { describe, expect, test } from '@jest/globals';
import { sinceTime } from '../../../src/review/ask/since-time.js';

const now = new Date(2026, 10, 27, 15, 30);

describe('the time that --since names', () => {
  test.each([
    ['1d', new Date(2026, 10, 27)],
    ['7d', new Date(2026, 10, 21)],
    ['2w', new Date(2026, 10, 14)],
    ['2026-11-01', new Date(2026, 10, 1)],
    ['20261101', new Date(2026, 10, 1)],
    ['24h', new Date(2026, 10, 26, 15, 30)],
    ['2026-11-01T14:05:00+02:00', new Date('2026-11-01T12:05:00Z')],
  ])('is a local day, with today as the last of several, or a time: %s', (text, expected) => {
    expect(sinceTime(text, now)).toEqual(expected);
  });

  test.each(['yesterday', '2026-02-31', '7', ''])('is refused if it is neither a day nor a time: %j', (text) => {
    expect(() => sinceTime(text, now)).toThrow(/is not a day or time to begin with: write 7d, 2w, 24h, 2026-11-01/);
  });
});

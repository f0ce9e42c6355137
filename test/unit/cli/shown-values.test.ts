import { describe, expect, test } from '@jest/globals';
import { dollars, homeless, localSecond, shortCount, shortDay, shortTime } from '../../../src/cli/shown-values.js';

describe('values for people', () => {
  test.each([
    [0, '0'],
    [999, '999'],
    [1_000, '1.00k'],
    [34_149, '34.1k'],
    [999_499, '999k'],
    [999_600, '1.00M'],
    [12_345_678, '12.3M'],
    [2e9, '2.00G'],
  ])('shows %d tokens as %s', (count, shown) => {
    expect(shortCount(count)).toBe(shown);
  });

  test.each([
    [0, '$0'],
    [0.0042, '$0.0042'],
    [0.015, '$0.01'],
    [12.345, '$12.35'],
    [1234567.8, '$1,234,567.80'],
  ])('shows %d dollars as %s', (amount, shown) => {
    expect(dollars(amount)).toBe(shown);
  });

  test('shows local times without milliseconds, and the year only if it is not the current one', () => {
    const time = new Date(2026, 10, 27, 9, 5, 7, 412);
    const now = new Date(2026, 11, 1);
    expect([shortTime(time, now), shortDay(time, now)]).toEqual(['27 Nov 09:05', '27 Nov']);
    expect(shortTime(time, new Date(2027, 0, 1))).toBe('27 Nov 2026');
    expect(localSecond(time)).toMatch(/^2026-11-27T09:05:07(?:Z|[+-]\d\d:\d\d)$/);
    expect(new Date(localSecond(time)).getTime()).toBe(time.getTime() - 412);
  });

  test('shortens only the home folder', () => {
    expect(['/h/m', '/h/m/a', '/h/mira'].map((path) => homeless(path, '/h/m'))).toEqual(['~', '~/a', '/h/mira']);
  });
});

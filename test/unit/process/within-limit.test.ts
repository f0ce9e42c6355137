import { describe, expect, test } from '@jest/globals';
import { endsWithin, withinLimit } from '../../../src/process/within-limit.js';

const never = new Promise<string>(() => undefined);
const HOUR = 3_600_000;

describe('a time limit', () => {
  test('returns the result of the work, or rejects with its error', async () => {
    expect(await withinLimit(Promise.resolve('done'), HOUR, () => 'late')).toBe('done');
    await expect(withinLimit(Promise.reject(new Error('broken')), HOUR, () => 'late')).rejects.toThrow('broken');
    expect(await endsWithin(Promise.resolve(), HOUR)).toBe(true);
  });

  test('returns the result of the fallback, or throws its error', async () => {
    const limit = { ms: 1, keepsAlive: true };
    expect(await withinLimit(never, limit, () => 'late')).toBe('late');
    expect(await withinLimit(never, limit, async () => 'later')).toBe('later');
    await expect(
      withinLimit(never, limit, () => {
        throw new Error('too late');
      }),
    ).rejects.toThrow('too late');
    expect(await withinLimit(endsWithin(never, 1), limit, () => false)).toBe(false);
  });

  test('leaves no timer and causes no error, however often it waits', async () => {
    const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    for (let n = 0; n < 100; n++) await withinLimit(Promise.resolve(n), { ms: HOUR, keepsAlive: true }, () => -1);
    expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout')).toHaveLength(before);
  });
});

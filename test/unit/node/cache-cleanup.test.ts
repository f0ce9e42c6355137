import { describe, expect, test } from '@jest/globals';
import { expiredEntries } from '../../../src/node/cache-cleanup.js';

const DAY = 86_400_000;
const now = 1_000 * DAY;
const entry = (name: string, daysAgo: number): { readonly name: string; readonly usedMs: number } => ({
  name,
  usedMs: now - daysAgo * DAY,
});
const current = 'aaaaaaaaaaaaaaaa';
const other = 'bbbbbbbbbbbbbbbb';
const draft = '.draft-0f8fad5b-d9cb-469f-a165-70867728950e';

describe('old installations in the cache', () => {
  test('an installation unused for more than a month goes, the current one never', () => {
    expect(expiredEntries([entry(`node-${current}`, 400), entry(`node-${other}`, 31)], current, now)).toEqual([`node-${other}`]);
  });
  test('a recently used installation stays, since its node may still run', () => {
    expect(expiredEntries([entry(`node-${other}`, 29)], current, now)).toEqual([]);
  });
  test('the draft of a build that died a day ago goes, a fresh one stays', () => {
    expect(expiredEntries([entry(draft, 2)], current, now)).toEqual([draft]);
    expect(expiredEntries([entry(draft, 0.5)], current, now)).toEqual([]);
  });
  test('what is not known stays', () => {
    expect(expiredEntries([entry('node-x', 900), entry('notes.txt', 900), entry(`node-${other}.lock`, 900)], current, now)).toEqual([]);
  });
});

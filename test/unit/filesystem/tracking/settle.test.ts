import { describe, expect, test } from '@jest/globals';
import { settle } from '../../../../src/filesystem/tracking/change-queue.js';
import type { FileStamp } from '../../../../src/filesystem/tracking/file-stamp.js';

const TIMES = { restMs: 100, absentMs: 500, longestMs: 2000 };
const file = (changedAtMs: number): FileStamp => ({
  mark: 'm',
  present: { size: 1, mtimeMs: changedAtMs, changedAtMs },
});
const GONE: FileStamp = { mark: 'absent', present: undefined };

describe('settling', () => {
  test.each([
    [
      'a file changed just now is looked at again after the rest',
      file(1000),
      { same: 0, waited: 0, clock: 1000 },
      { settled: false, againInMs: 100 },
    ],
    [
      'a file changed a while ago goes on at once',
      file(1000),
      { same: 0, waited: 0, clock: 1100 },
      { settled: true, atRest: true },
    ],
    [
      'a file dated in the future goes on when looks agree',
      file(9000),
      { same: 100, waited: 100, clock: 1100 },
      { settled: true, atRest: true },
    ],
    [
      'a file that never rests goes on at the limit, in motion',
      file(3000),
      { same: 0, waited: 2000, clock: 3001 },
      { settled: true, atRest: false },
    ],
    [
      'the last wait ends at the limit',
      file(3000),
      { same: 0, waited: 1990, clock: 3000 },
      { settled: false, againInMs: 10 },
    ],
    ['a missing file is waited for', GONE, { same: 0, waited: 0, clock: 1000 }, { settled: false, againInMs: 100 }],
    [
      'a missing file is waited for beyond the limit too',
      GONE,
      { same: 450, waited: 2500, clock: 1000 },
      { settled: false, againInMs: 50 },
    ],
    [
      'a file missing for long is deleted',
      GONE,
      { same: 500, waited: 500, clock: 1000 },
      { settled: true, atRest: true },
    ],
  ])('%s', (_claim, stamp, { same, waited, clock }, verdict) => {
    const nowMs = 50_000;
    expect(settle({ stamp, sameSinceMs: nowMs - same, beganMs: nowMs - waited, nowMs, clockMs: clock }, TIMES)).toEqual(
      verdict,
    );
  });
});

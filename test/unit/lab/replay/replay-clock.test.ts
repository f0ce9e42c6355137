import { describe, expect, test } from '@jest/globals';
import { NO_CLOCK_EPOCH, ReplayClock } from '../../../../src/lab/replay/replay-clock.js';

const LATEST = Date.UTC(2026, 0, 1);
const moments = (clock: ReplayClock, at: readonly (number | undefined)[]): readonly number[] =>
  at.map((moment) => {
    clock.advance(moment);
    return clock.now;
  });

describe("the recording's clock", () => {
  test('follows its entries and never falls', () => {
    const clock = new ReplayClock(() => LATEST);
    expect(moments(clock, [1_000, 3_000, 2_000, 2_500, 4_000])).toEqual([1_000, 3_000, 3_000, 3_000, 4_000]);
    expect(clock.repairs).toEqual({ backwards: 1, impossible: 0, missing: 0 });
  });

  test('counts seconds from the year 2000 if a recording has no times', () => {
    const clock = new ReplayClock(() => LATEST);
    expect(moments(clock, [undefined, undefined])).toEqual([NO_CLOCK_EPOCH + 1_000, NO_CLOCK_EPOCH + 2_000]);
    expect(clock.repairs.missing).toBe(2);
  });

  test('stands still if an entry has no time, an impossible one, or a future one', () => {
    const clock = new ReplayClock(() => LATEST);
    expect(moments(clock, [5_000, undefined, Number.NaN, -5, LATEST + 1, 6_000])).toEqual([
      5_000, 5_000, 5_000, 5_000, 5_000, 6_000,
    ]);
    expect(clock.repairs).toEqual({ backwards: 0, impossible: 3, missing: 1 });
  });
});

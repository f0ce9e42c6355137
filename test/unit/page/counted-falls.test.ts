import { describe, expect, test } from '@jest/globals';
import { countedFalls } from '../../../src/page/counted-falls.js';
import type { StripCall, StripMark } from '../../../src/page/wire.js';

const call = (step: number, input: number | undefined, kind: StripCall['kind'] = 'transcript'): StripCall => ({
  kind,
  turn: 1,
  step,
  at: '2026-01-01T00:00:00.000Z',
  delivered: null,
  chars: 10,
  sections: [],
  epoch: null,
  usage: input === undefined ? null : { input },
});
const compacted = { step: 4, kind: 'event', event: 'compacted' } as StripMark;

describe('the falls of the provider’s count', () => {
  test('are found between counted calls of a transcript', () => {
    const calls = [call(1, 130_000), call(3, undefined), call(5, 99_000), call(7, 98_900)];
    expect(countedFalls({ calls, marks: [] })).toEqual([{ step: 5, call: 3, fewer: 31_000 }]);
  });

  test('are none where a compaction or the request itself shows what left', () => {
    expect(countedFalls({ calls: [call(3, 130_000), call(5, 99_000)], marks: [compacted] })).toEqual([]);
    expect(countedFalls({ calls: [call(3, 130_000, 'sent'), call(5, 99_000, 'sent')], marks: [] })).toEqual([]);
  });
});

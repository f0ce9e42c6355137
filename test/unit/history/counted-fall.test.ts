import { describe, expect, test } from '@jest/globals';
import { countedFalls } from '../../../src/history/rebuild/counted-fall.js';

type Requests = Parameters<typeof countedFalls>[0];
const request = (
  step: number,
  tokens: number | undefined,
  kind: Requests[number]['kind'] = 'transcript',
): Requests[number] => ({ kind, step, tokens });

describe('the falls of the provider’s count', () => {
  test('are found between counted calls of a transcript', () => {
    const requests = [request(1, 130_000), request(3, undefined), request(5, 99_000), request(7, 98_900)];
    expect(countedFalls(requests, [])).toEqual([{ step: 5, call: 3, fewer: 31_000 }]);
  });

  test('are none where a compaction or the request itself shows what left', () => {
    expect(countedFalls([request(3, 130_000), request(5, 99_000)], [4])).toEqual([]);
    expect(countedFalls([request(3, 130_000, 'sent'), request(5, 99_000, 'sent')], [])).toEqual([]);
  });
});

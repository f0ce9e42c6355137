import { expect, test } from '@jest/globals';
import { resumeProgress } from '../../../src/host/backend.js';

function told(...looks: readonly (readonly [atMs: number, done: number])[]): readonly string[] {
  const sentences: string[] = [];
  let now = 0;
  const tell = resumeProgress(
    's1',
    (message) => sentences.push(message),
    () => now,
  );
  for (const [atMs, done] of looks) {
    now = atMs;
    tell(done, 100);
  }
  return sentences;
}

test('prints nothing for a short resume', () => {
  expect(told([10, 1], [200, 50], [300, 99], [400, 100])).toEqual([]);
});

test('prints progress of a long resume from time to time, and its end', () => {
  expect(told([100, 1], [600, 20], [700, 30], [1_000, 40], [1_100, 50], [1_200, 100])).toEqual([
    'resuming session s1: 20 of 100 files checked',
    'resuming session s1: 50 of 100 files checked',
    'resuming session s1: 100 of 100 files checked',
  ]);
});

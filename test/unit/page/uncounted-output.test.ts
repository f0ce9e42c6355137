import { describe, expect, test } from '@jest/globals';
import type { Step } from '../../../src/objects/step.js';
import { isTooSmall, uncountedAnswers } from '../../../src/review/money/uncounted-output.js';

const answer = (seq: number, chars: number, output: number): readonly Step[] => [
  { seq, turn: 1, at: 0, message: { role: 'user', text: 'Go on.' }, changes: {} } as unknown as Step,
  {
    seq: seq + 1,
    turn: 1,
    at: 0,
    message: { role: 'assistant', text: 'x'.repeat(chars) },
    usage: { input: 100, output },
    changes: {},
  } as unknown as Step,
];

describe('the output of an answer', () => {
  test('is not counted if the count is too small for its text or its calls', () => {
    expect(isTooSmall(1, { chars: 1_432, calls: 0 })).toBe(true);
    expect(isTooSmall(8, { chars: 0, calls: 1 })).toBe(true);
  });

  test('is counted if the count is possible', () => {
    expect(isTooSmall(1, { chars: 4, calls: 0 })).toBe(false);
    expect(isTooSmall(358, { chars: 1_432, calls: 2 })).toBe(false);
    expect(isTooSmall(115, { chars: 0, calls: 1 })).toBe(false);
  });

  test('is found by the steps of the answer', () => {
    expect([...uncountedAnswers([...answer(1, 1_432, 1), ...answer(3, 1_432, 400)])]).toEqual([2]);
  });
});

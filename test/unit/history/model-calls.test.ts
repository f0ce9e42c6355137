import { describe, expect, test } from '@jest/globals';
import { callNumbers, modelCallsOf } from '../../../src/history/rebuild/model-calls.js';
import type { ModelUsage, Step } from '../../../src/objects/step.js';

type Said = Partial<Pick<Step, 'usage' | 'event'>> & {
  readonly says?: string;
  readonly calls?: string;
  readonly by?: number;
};

/** Makes steps in order. `says` is a role, `calls` the name of a call. */
const stepsOf = (...said: readonly Said[]): readonly Step[] =>
  said.map(({ says, calls, by, ...more }, i) => {
    const message = says === undefined ? {} : { message: { role: says, text: `${says} ${i + 1}` } };
    const call = calls === undefined ? {} : { call: { id: calls, ...(by === undefined ? {} : { by }) } };
    return { session: 's', seq: i + 1, turn: 1, at: i, changes: {}, ...message, ...call, ...more } as unknown as Step;
  });

const count: ModelUsage = { input: 10, output: 1 };
const requests = (steps: readonly Step[]): readonly number[] => modelCallsOf(steps).map(({ step }) => step);

describe('the calls of a model', () => {
  test('are its answers: parallel tool calls belong to one, with results between them', () => {
    const steps = stepsOf(
      { says: 'user' },
      { says: 'assistant', usage: count },
      { calls: 'a' },
      { calls: 'b' },
      { calls: 'c' },
      { says: 'assistant', usage: count },
    );
    expect(requests(steps)).toEqual([1, 5]);
    expect([...callNumbers(modelCallsOf(steps))]).toEqual([2, 3, 4, 5].map((step) => [step, 1]).concat([[6, 2]]));
  });

  test('may have several messages and one count', () => {
    const steps = stepsOf(
      { says: 'user' },
      { says: 'assistant' },
      { says: 'assistant', usage: count },
      { calls: 'a' },
      { says: 'assistant', usage: count },
      { says: 'assistant', usage: { input: 20 } },
    );
    expect(modelCallsOf(steps).map(({ step, answer, usage }) => [step, answer, usage])).toEqual([
      [1, [2, 3, 4], count],
      [4, [5], count],
      [5, [6], { input: 20 }],
    ]);
  });

  test('leave out an answer without a token, unless no answer of the session has one', () => {
    const nothing = { input: 0, output: 0 };
    const failed = stepsOf({ says: 'user' }, { says: 'assistant', usage: nothing }, { says: 'user' });
    expect(requests(failed)).toEqual([1]);
    const later = stepsOf({ says: 'user' }, { says: 'assistant', usage: nothing }, { says: 'assistant', usage: count });
    expect(requests(later)).toEqual([2]);
  });

  test('do not include a call that the harness made, and find the answer of a late one', () => {
    const steps = stepsOf(
      { says: 'user' },
      { calls: 'attached:1' },
      { says: 'assistant', usage: count },
      { says: 'user' },
      { calls: 'late', by: 3 },
      { says: 'assistant', usage: count },
    );
    expect(modelCallsOf(steps).map(({ step, answer }) => [step, answer])).toEqual([
      [2, [3, 5]],
      [5, [6]],
    ]);
  });

  test('begin again after a compaction', () => {
    const steps = stepsOf(
      { says: 'user' },
      { says: 'assistant' },
      { event: { kind: 'compacted' } },
      { says: 'assistant' },
    );
    expect(requests(steps)).toEqual([1, 3]);
  });

  test('are the tool calls if no message of the model was reported', () => {
    expect(requests(stepsOf({ calls: 'a' }, { says: 'user' }, { calls: 'b' }, { calls: 'c' }))).toEqual([0, 2, 3]);
  });
});

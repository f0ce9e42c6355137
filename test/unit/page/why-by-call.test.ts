import { describe, expect, test } from '@jest/globals';
import { whyByCall } from '../../../src/page/why-by-call.js';
import type { Strip } from '../../../src/page/wire.js';

const strip = { calls: [{ step: 2 }, { step: 5 }].map((call) => ({ ...call, delivered: 'library', sections: [] })) };

describe('why something changed', () => {
  test.each([
    ['written by edit, step 7', 7, 'agent', 'written by edit, call 2'],
    ['collapsed by the window at edit, step 4', 4, 'window', 'collapsed by the window at edit'],
    ['a message of user, step 5', 5, 'person', 'a message of user'],
    ['the harness compacted its history at step 5', 5, 'harness', 'the harness compacted its history'],
    ['the transcript does not show why', null, 'harness', 'the transcript does not show why'],
  ] as const)('names the call of “%s”, not the step', (why, step, actor, told) => {
    expect(whyByCall({ why, step, actor }, strip as unknown as Strip)).toBe(told);
  });
});

import { describe, expect, test } from '@jest/globals';
import { objectId, sessionId } from '../../../src/objects/ids.js';
import { planCall, planPersonStep } from '../../../src/session/plan-step.js';
import { applyStep, emptySession } from '../../../src/session/session-state.js';
import { DEFAULT_POLICY } from '../../../src/session/step-policy.js';
import { type Verb, verbOutcome } from '../../../src/session/verb-outcome.js';

const [a, b, c1, nobody] = ['a', 'b', 'c1', 'nobody'].map(objectId) as [never, never, never, never];
const empty = emptySession(sessionId('s1'));
const called = applyStep(
  empty,
  planCall(empty, { call: c1, at: 1, activateFiles: [a], index: [a, b] }, DEFAULT_POLICY),
);
const state = applyStep(called, planPersonStep(called, { verbs: { pin: [a] }, at: 2 }));

describe('the effect of a verb on an object (decisions D1-D3)', () => {
  test.each<[Verb, string, string]>([
    ['activate', b, 'done'],
    ['activate', a, 'already-active'],
    ['deactivate', a, 'done'],
    ['deactivate', b, 'not-active'],
    ['pin', b, 'done'],
    ['pin', a, 'already-pinned'],
    ['unpin', a, 'done'],
    ['unpin', c1, 'not-pinned'],
    ['activate', nobody, 'unknown-object'],
    ['unpin', nobody, 'unknown-object'],
    ['pin', 'chat:s1', 'infrastructure-object'],
    ['deactivate', 'session:other', 'infrastructure-object'],
  ])('%s %s: %s', (verb, id, outcome) => {
    expect(verbOutcome(state, verb, objectId(id))).toBe(outcome);
  });

  test('keeps an inactive object inactive when it is pinned, and a pinned one pinned when it is deactivated', () => {
    const after = applyStep(state, planPersonStep(state, { verbs: { pin: [b], deactivate: [a] }, at: 3 }));
    expect([after.isPinned(b), after.isActive(b), after.isPinned(a), after.isActive(a)]).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });
});

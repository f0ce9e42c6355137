import { describe, expect, test } from '@jest/globals';
import { objectId, sessionId } from '../../../src/objects/ids.js';
import { DEFAULT_POLICY, planCall, planVerbs } from '../../../src/session/plan-step.js';
import { applyStep, emptySession } from '../../../src/session/session-state.js';
import { outcomeText, SUCCEEDS, type Verb, verbOutcome } from '../../../src/session/verb-outcome.js';

const [a, b, c1, nobody] = ['a', 'b', 'c1', 'nobody'].map(objectId) as [never, never, never, never];
const empty = emptySession(sessionId('s1'));
const called = applyStep(empty, planCall(empty, { call: c1, at: 1, activateFiles: [a], index: [a, b] }, DEFAULT_POLICY));
const state = applyStep(called, planVerbs(called, { pin: [a] }, 2, DEFAULT_POLICY));

describe('what a verb does to an object (decisions D1-D3)', () => {
  test.each<[Verb, string, string, boolean]>([
    ['activate', b, 'done', true],
    ['activate', a, 'already-active', true],
    ['deactivate', a, 'done', true],
    ['deactivate', b, 'not-active', false],
    ['pin', b, 'done', true],
    ['pin', a, 'already-pinned', true],
    ['unpin', a, 'done', true],
    ['unpin', c1, 'not-pinned', false],
    ['activate', nobody, 'unknown-object', false],
    ['unpin', nobody, 'unknown-object', false],
    ['pin', 'chat:s1', 'infrastructure-object', false],
    ['deactivate', 'session:other', 'infrastructure-object', false],
  ])('%s %s: %s', (verb, id, outcome, success) => {
    const got = verbOutcome(state, verb, objectId(id));
    expect([got, SUCCEEDS[got]]).toEqual([outcome, success]);
  });

  test('the line for the agent names the object as the agent did, and cannot be broken in two', () => {
    expect(outcomeText('pin', 'src/a.ts', 'done')).toBe('"src/a.ts" is now pinned');
    expect(outcomeText('deactivate', 'x\ny', 'not-active')).toBe('"x\\ny" is not active, so there is nothing to deactivate');
    expect(outcomeText('activate', 'chat:s1', 'infrastructure-object')).toContain('given to activate');
  });

  test('pinning leaves an inactive object inactive, deactivating a pinned one leaves it pinned', () => {
    const after = applyStep(state, planVerbs(state, { pin: [b], deactivate: [a] }, 3, DEFAULT_POLICY));
    expect([after.isPinned(b), after.isActive(b), after.isPinned(a), after.isActive(a)]).toEqual([true, false, true, false]);
  });
});

import { describe, expect, test } from '@jest/globals';
import { objectId, sessionId } from '../../../src/objects/ids.js';
import type { Step } from '../../../src/objects/step.js';
import { SessionError } from '../../../src/session/errors.js';
import { planCall, planMessage, planPersonStep } from '../../../src/session/plan-step.js';
import { applyStep, applySteps, emptySession, type SessionState } from '../../../src/session/session-state.js';
import { DEFAULT_POLICY } from '../../../src/session/step-policy.js';
import { windowOf } from '../../support/result-window.js';

const SID = sessionId('s1');
const step = (more: Partial<Step>): Step => ({
  session: SID,
  seq: 1,
  turn: 1,
  at: 10,
  opens: { rule: 'first-step' },
  changes: {},
  ...more,
});

function codeOf(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    return error instanceof SessionError ? error.code : String(error);
  }
  return undefined;
}

describe('folding steps (decision G3)', () => {
  test('starts with an empty session before its first turn', () => {
    const state = emptySession(SID);
    expect([state.seq, state.turn, state.lastAt, state.turnRef, state.turnRule]).toEqual([
      0,
      0,
      0,
      undefined,
      undefined,
    ]);
    expect([state.sets, state.turns, windowOf(state)]).toEqual([{ index: [], active: [], pinned: [] }, [], []]);
  });

  test('refuses a gap, a repeat and a foreign step', () => {
    const state = applyStep(emptySession(SID), step({}));
    expect(codeOf(() => applyStep(state, step({ seq: 3, at: 11 })))).toBe('sequence-gap');
    expect(codeOf(() => applyStep(state, step({})))).toBe('sequence-gap');
    expect(codeOf(() => applyStep(state, step({ seq: 2, session: sessionId('s2') })))).toBe('wrong-session');
  });

  test('refuses a step that skips, repeats or silently opens a turn, or is earlier', () => {
    const state = applyStep(emptySession(SID), step({}));
    const { opens: _, ...plain } = step({ seq: 2, at: 11 });
    expect(codeOf(() => applyStep(state, { ...plain, turn: 2 }))).toBe('out-of-order');
    expect(codeOf(() => applyStep(state, step({ seq: 2, at: 11, turn: 1 })))).toBe('out-of-order');
    expect(codeOf(() => applyStep(state, step({ seq: 2, at: 11, turn: 3 })))).toBe('out-of-order');
    expect(codeOf(() => applyStep(state, { ...plain, at: 9 }))).toBe('out-of-order');
    expect(codeOf(() => applyStep(state, { ...plain, at: Number.NaN }))).toBe('out-of-order');
    const { opens: __, ...unopened } = step({ turn: 0 });
    expect(codeOf(() => applyStep(emptySession(SID), unopened))).toBe('out-of-order');
  });

  test('refuses to activate or pin an id outside the index, and keeps the state', () => {
    const state = emptySession(SID);
    expect(codeOf(() => applyStep(state, step({ changes: { activate: [objectId('x')] } })))).toBe('unknown-object');
    expect(codeOf(() => applyStep(state, step({ changes: { pin: [objectId('x')] } })))).toBe('unknown-object');
    expect([state.seq, state.sets.index]).toEqual([0, []]);
  });

  test('keeps an earlier state unchanged, and its two futures separate', () => {
    const [a, b, c] = ['a', 'b', 'c'].map(objectId);
    const first = applyStep(
      emptySession(SID),
      planCall(emptySession(SID), { call: a as never, at: 1, activateFiles: [], index: [] }, DEFAULT_POLICY),
    );
    const left = applyStep(
      first,
      planCall(first, { call: b as never, at: 2, activateFiles: [], index: [] }, DEFAULT_POLICY),
    );
    const right = applyStep(
      first,
      planCall(first, { call: c as never, at: 2, activateFiles: [], index: [] }, DEFAULT_POLICY),
    );
    expect([first.sets.index, left.sets.index, right.sets.index]).toEqual([[a], [a, b], [a, c]]);
    expect([first.has(b as never), left.has(c as never), right.has(b as never)]).toEqual([false, false, false]);
  });

  test('refuses many steps at once like each of them, and leaves the session unchanged', () => {
    const state = applyStep(emptySession(SID), step({}));
    const next = step({ seq: 2, at: 11, turn: 2 });
    expect(codeOf(() => applySteps(state, [next, step({ seq: 4, at: 12, turn: 3 })]))).toBe('sequence-gap');
    expect(
      codeOf(() => applySteps(state, [next, step({ seq: 3, at: 12, turn: 3, changes: { pin: [objectId('x')] } })])),
    ).toBe('unknown-object');
    expect([state.seq, state.turns.length, applySteps(state, []), applySteps(state, [next]).seq]).toEqual([
      1,
      1,
      state,
      2,
    ]);
  });

  test('adds calls to the last assistant message of their turn, or to an empty one', () => {
    let state = emptySession(SID);
    const add = (next: Step) => {
      state = applyStep(state, next);
    };
    add(planMessage(state, { message: { role: 'user', text: 'go' }, at: 1 }, DEFAULT_POLICY));
    add(planCall(state, { call: objectId('c1'), at: 2, activateFiles: [], index: [] }, DEFAULT_POLICY));
    add(planMessage(state, { message: { role: 'assistant', text: 'More.', name: 'bob' }, at: 3 }, DEFAULT_POLICY));
    add(planCall(state, { call: objectId('c2'), at: 4, activateFiles: [], index: [] }, DEFAULT_POLICY));
    add(planCall(state, { call: objectId('c3'), at: 5, activateFiles: [], index: [] }, DEFAULT_POLICY));
    add(planMessage(state, { message: { role: 'user', text: 'again' }, at: 6 }, DEFAULT_POLICY));
    expect(state.turns).toEqual([
      {
        turn: 1,
        messages: [
          { role: 'user', text: 'go' },
          { role: 'assistant', text: '', toolcall_refs: ['c1'] },
          { role: 'assistant', text: 'More.', name: 'bob', toolcall_refs: ['c2', 'c3'] },
        ],
      },
      { turn: 2, messages: [{ role: 'user', text: 'again' }] },
    ]);
  });
});

/** Collects every object of a value. */
function reachable(root: unknown, known: ReadonlySet<object> = new Set()): Set<object> {
  const found = new Set<object>();
  const queue: unknown[] = [root];
  while (queue.length > 0) {
    const value = queue.pop();
    if (value === null || typeof value !== 'object' || found.has(value) || known.has(value)) continue;
    found.add(value);
    queue.push(...Object.values(value));
    if (value instanceof Map || value instanceof Set) queue.push(...value.keys(), ...value.values());
  }
  return found;
}

/**
 * Counts the slots that a step wrote: those of every object of the later state that the earlier one
 * does not share.
 */
function slotsCopied(before: SessionState, after: SessionState): number {
  const shared = reachable(before);
  let slots = 0;
  for (const value of reachable(after, shared))
    slots += value instanceof Map || value instanceof Set ? value.size : Object.keys(value).length;
  return slots;
}

function sessionOf(calls: number, everyTurn: number): SessionState {
  let state = emptySession(SID);
  for (let i = 0; i < calls; i++) {
    if (i % everyTurn === 0)
      state = applyStep(state, planMessage(state, { message: { role: 'user', text: `m${i}` }, at: i }, DEFAULT_POLICY));
    const file = objectId(`file-${i}`);
    state = applyStep(
      state,
      planCall(state, { call: objectId(`call-${i}`), at: i, activateFiles: [file], index: [file] }, DEFAULT_POLICY),
    );
  }
  return state;
}

/** A session that also read many files whole, in one call. */
function withFiles(state: SessionState, count: number): SessionState {
  const files = Array.from({ length: count }, (_, i) => objectId(`listed-${i}`));
  return applyStep(
    state,
    planCall(state, { call: objectId('all'), at: 1e5, activateFiles: files, index: files }, DEFAULT_POLICY),
  );
}

describe('the cost of a step', () => {
  const next = (state: SessionState) => {
    const file = objectId('another-file');
    return applyStep(
      state,
      planCall(state, { call: objectId('another'), at: 1e6, activateFiles: [file], index: [file] }, DEFAULT_POLICY),
    );
  };

  test('is the same in a session of 11,000 mostly active ids as in a small one, in one long turn and in many', () => {
    for (const everyTurn of [10_000, 5]) {
      const small = sessionOf(100, everyTurn);
      const large = withFiles(sessionOf(500, everyTurn), 10_000);
      expect(large.sets.index).toHaveLength(11_001);
      expect(large.sets.active.length).toBeGreaterThan(10_000);
      const [few, many] = [slotsCopied(small, next(small)), slotsCopied(large, next(large))];
      expect(few).toBeGreaterThan(10);
      // A tree with 32 branches is one or two nodes deeper at a hundred times the size. A copied
      // list would have 11,000 slots.
      expect(many).toBeLessThan(few + 500);
      expect(many).toBeLessThan(1500);
    }
  });

  test('is the same for changes in the middle of the sets', () => {
    const large = withFiles(sessionOf(200, 50), 10_000);
    const changes = planPersonStep(large, {
      verbs: { deactivate: [objectId('listed-5000')], pin: [objectId('call-77')], activate: [objectId('call-78')] },
      at: 1e6,
    });
    const after = applyStep(large, changes);
    expect([
      after.isActive(objectId('listed-5000')),
      after.isPinned(objectId('call-77')),
      after.isActive(objectId('call-78')),
    ]).toEqual([false, true, true]);
    expect(slotsCopied(large, after)).toBeLessThan(1500);
  });
});

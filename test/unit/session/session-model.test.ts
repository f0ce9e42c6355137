import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type ObjectId, objectId, sessionId } from '../../../src/objects/ids.js';
import { EMPTY_SETS } from '../../../src/objects/sets.js';
import type { Step } from '../../../src/objects/step.js';
import { planCall, planMessage, planPersonStep } from '../../../src/session/plan-step.js';
import { applyStep, applySteps, emptySession, type SessionState } from '../../../src/session/session-state.js';
import type { StepPolicy } from '../../../src/session/step-policy.js';
import { applyChanges, withStep } from '../../support/plain-folds.js';
import { windowOf } from '../../support/result-window.js';
import { type Happening, NaiveSession } from './naive-session.js';

const file = fc.nat(11).map((n) => objectId(`file-${n}`));
const numbers = fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(fc.nat(200), { maxLength: 4 }));
const picks = fc.record({ activate: numbers, deactivate: numbers, pin: numbers, unpin: numbers });
const wait = fc.oneof(fc.integer({ min: -50, max: 2000 }), fc.constantFrom(0, 59_999, 60_000, 90_000));
const happening: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('message' as const),
      role: fc.constantFrom('user', 'assistant', 'system'),
      wait,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('verbs' as const), wait, picks }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('call' as const),
      wait,
      turnRef: fc.constantFrom(undefined, undefined, 't1', 't2'),
      reads: fc.array(file, { maxLength: 2 }),
      mentions: fc.array(file, { maxLength: 3 }),
      picks,
    }),
  },
);
const happenings = fc.array(happening, { minLength: 1, maxLength: 60 });
const policy: fc.Arbitrary<StepPolicy> = fc.record({
  window: fc.oneof(fc.constant({ perTurn: 5, turns: 3 }), fc.record({ perTurn: fc.nat(3), turns: fc.nat(3) })),
  pauseMs: fc.constant(60_000),
});

const SID = sessionId('s1');

/** Applies an event to the model and returns the session's step for the same event. */
function happen(state: SessionState, model: NaiveSession, what: Happening, rules: StepPolicy): Step {
  const at = model.lastAt + what.wait;
  if (what.kind === 'message') {
    const step = planMessage(state, { message: { role: what.role, text: `m${state.seq}` }, at }, rules);
    model.message(what.role, `m${state.seq}`, at);
    return step;
  }
  const verbs = model.pick(what.picks);
  if (what.kind === 'verbs') {
    model.verbs(verbs, at);
    return planPersonStep(state, { verbs, at });
  }
  const { reads, mentions, turnRef } = what;
  const refs = turnRef === undefined ? {} : { turnRef };
  const plan = {
    call: objectId(`call-${state.seq + 1}`),
    at,
    activateFiles: reads,
    index: [...mentions, ...reads],
    verbs,
    ...refs,
  };
  model.call(plan);
  return planCall(state, plan, rules);
}

function run(
  list: readonly Happening[],
  rules: StepPolicy,
  seen: (before: SessionState, step: Step, after: SessionState, model: NaiveSession) => void,
) {
  const model = new NaiveSession(rules);
  const steps: Step[] = [];
  let state = emptySession(SID);
  for (const what of list) {
    const step = happen(state, model, what, rules);
    const after = applyStep(state, step);
    seen(state, step, after, model);
    steps.push(step);
    state = after;
  }
  return { state, steps, model };
}

const subset = (inner: readonly ObjectId[], outer: readonly ObjectId[]) => inner.every((id) => outer.includes(id));

describe('random sessions', () => {
  test('have the sets, turns and moments of a naive model of §3 after every step', () => {
    fc.assert(
      fc.property(happenings, policy, (list, rules) => {
        run(list, rules, (_before, step, after, model) => {
          expect(after.sets).toEqual({ index: model.index, active: model.active, pinned: model.pinned });
          expect(after.turns).toEqual(model.turns.map(({ messages }, i) => ({ turn: i + 1, messages })));
          expect([after.turn, after.turnRule, after.turnRef]).toEqual([
            model.turns.length,
            model.turn.rule,
            model.turn.ref,
          ]);
          expect([after.lastAt, step.at]).toEqual([model.lastAt, model.lastAt]);
          expect(windowOf(after)).toEqual(model.turns.map(({ fresh }) => fresh));
        });
      }),
      { numRuns: 150 },
    );
  });

  test('keep the invariants of decision D1 and of the window §4.3 at every step', () => {
    fc.assert(
      fc.property(happenings, policy, (list, rules) => {
        run(list, rules, (before, step, after) => {
          const { index, active, pinned } = after.sets;
          expect(subset(active, index) && subset(pinned, index)).toBe(true);
          expect(index.slice(0, before.sets.index.length)).toEqual(before.sets.index);
          expect(step.at).toBeGreaterThanOrEqual(before.lastAt);
          expect(index.every((id) => after.has(id))).toBe(true);
          expect([
            index.filter((id) => after.isActive(id)).length,
            index.filter((id) => after.isPinned(id)).length,
          ]).toEqual([active.length, pinned.length]);
          const loose = new Set(after.collapsible());
          expect(
            active.filter((id) => after.isToolResult(id) && !pinned.includes(id)).every((id) => loose.has(id)),
          ).toBe(true);
          const { index: met = [], activate = [], deactivate = [], pin = [], unpin = [] } = step.changes;
          expect(met.some((id) => before.has(id))).toBe(false);
          expect(deactivate.every((id) => before.isActive(id)) && unpin.every((id) => before.isPinned(id))).toBe(true);
          expect(activate.some((id) => before.isActive(id) && !deactivate.includes(id))).toBe(false);
          expect(pin.some((id) => before.isPinned(id) && !unpin.includes(id))).toBe(false);
          for (const [name, ids] of Object.entries(step.changes))
            expect([name, ids.length > 0, new Set(ids).size]).toEqual([name, true, ids.length]);
        });
      }),
      { numRuns: 100 },
    );
  });

  test('lose only active, unpinned tool results to the window', () => {
    fc.assert(
      fc.property(happenings, policy, (list, rules) => {
        const open: StepPolicy = { ...rules, window: { perTurn: 1000, turns: 1000 } };
        run(list, rules, (before, step, after) => {
          const asked = new Set(step.changes.deactivate ?? []);
          for (const id of before.sets.active) {
            if (after.isActive(id)) continue;
            expect(asked.has(id)).toBe(true);
          }
          // Plans the same step with an unbounded window. The difference is the collapsed part.
          if (step.call === undefined) return;
          const plan = { call: step.call.id, at: step.at, activateFiles: [], index: step.changes.index ?? [] };
          const unbounded = applyStep(before, planCall(before, plan, open)).sets.active;
          const bounded = applyStep(before, planCall(before, plan, rules)).sets.active;
          expect(subset(bounded, unbounded)).toBe(true);
          for (const id of unbounded)
            if (!bounded.includes(id)) expect([id.startsWith('call-'), before.isPinned(id)]).toEqual([true, false]);
        });
      }),
      { numRuns: 100 },
    );
  });

  test('equal the fold of their recorded steps, and have the same sets as plain applyChanges', () => {
    fc.assert(
      fc.property(happenings, policy, (list, rules) => {
        const { state, steps } = run(list, rules, () => undefined);
        const stored: readonly Step[] = JSON.parse(JSON.stringify(steps));
        const seen = (one: SessionState) => [
          [one.sets, one.turns, one.marks, windowOf(one), [...one.collapsible()]],
          [one.seq, one.turn, one.turnRef, one.turnRule, one.lastAt, one.indexSize],
        ];
        expect(seen(stored.reduce(applyStep, emptySession(SID)))).toEqual(seen(state));
        const cut = Math.floor(stored.length / 3);
        const begun = applySteps(emptySession(SID), stored.slice(0, cut));
        const before = seen(begun);
        expect(before).toEqual(seen(stored.slice(0, cut).reduce(applyStep, emptySession(SID))));
        expect(seen(applySteps(begun, stored.slice(cut)))).toEqual(seen(state));
        expect(seen(begun)).toEqual(before);
        expect(steps.reduce((sets, { changes }) => applyChanges(sets, changes), EMPTY_SETS)).toEqual(state.sets);
        expect(steps.reduce(withStep, [])).toEqual(state.turns);
      }),
      { numRuns: 150 },
    );
  });
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { HeadHashes } from '../../../src/objects/head-hashes.js';
import { objectId, sessionId } from '../../../src/objects/ids.js';
import type { Turn } from '../../../src/objects/object-type.js';
import type { Step } from '../../../src/objects/step.js';
import { chatVersion, sessionVersion } from '../../../src/objects/versions.js';
import { planCall, planMessage, planPersonStep } from '../../../src/session/plan-step.js';
import { applyStep, emptySession, type SessionState } from '../../../src/session/session-state.js';
import { DEFAULT_POLICY } from '../../../src/session/step-policy.js';
import { runningChatHead, runningSessionHead, toStored } from '../../../src/store/head.js';
import { PersistentList } from '../../../src/values/persistent-collections.js';

const SID = sessionId('s1');
const text = fc.string({ unit: 'grapheme', maxLength: 30 });
const doing = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('message' as const), role: fc.constantFrom('user', 'assistant'), text }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('call' as const), file: fc.nat(9), name: text, turn: fc.nat(1) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pin' as const), nth: fc.nat(50) }) },
);
type Doing = typeof doing extends fc.Arbitrary<infer D> ? D : never;

function stepOf(state: SessionState, what: Doing): Step {
  const at = state.lastAt + 1;
  if (what.kind === 'message')
    return planMessage(state, { message: { role: what.role, text: what.text }, at }, DEFAULT_POLICY);
  if (what.kind === 'pin') {
    const id = state.sets.index[what.nth % Math.max(1, state.sets.index.length)];
    return planPersonStep(state, { verbs: id === undefined ? {} : { pin: [id] }, at });
  }
  const call = objectId(`${what.name}\u{1f600}"\\:${state.seq}`);
  const file = objectId(`file-${what.file}`);
  return planCall(state, { call, at, turnRef: `t${what.turn}`, activateFiles: [file], index: [file] }, DEFAULT_POLICY);
}

function expectSealedHeads(state: SessionState, hashes: HeadHashes): void {
  const marks = { epoch: 2, upto: state.seq };
  expect(runningChatHead(state, hashes, { upto: state.seq })).toEqual(
    toStored(chatVersion(SID, state.turns), { upto: state.seq }).head,
  );
  expect(runningSessionHead(state, hashes, marks)).toEqual(toStored(sessionVersion(SID, state.sets), marks).head);
}

describe('the heads of a running session', () => {
  test('carry the hashes of the sealed versions at every step, after reads of any states', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(doing, fc.boolean()), { maxLength: 60 }), (story) => {
        const hashes = new HeadHashes(SID);
        let state = emptySession(SID);
        for (const [what, asked] of story) {
          const after = applyStep(state, stepOf(state, what));
          // The end of a turn reads the state before and the state after.
          if (asked) for (const each of [state, after]) expectSealedHeads(each, hashes);
          state = after;
        }
        expectSealedHeads(state, hashes);
        expectSealedHeads(state, new HeadHashes(SID));
      }),
      { numRuns: 150 },
    );
  });

  test('are built without reading closed turns again', () => {
    let read = 0;
    const turn = (n: number): Turn => ({
      turn: n,
      get messages() {
        read += 1;
        return [{ role: 'user', text: `question ${n}` }];
      },
    });
    const first = PersistentList.from(Array.from({ length: 100 }, (_, n) => turn(n + 1)));
    const hashes = new HeadHashes(SID);
    hashes.chat({ closed: first, running: PersistentList.from<never>([]) });
    expect(read).toBeGreaterThanOrEqual(100);
    read = 0;
    const later = hashes.chat({ closed: first.concat([turn(101)]), running: PersistentList.from<never>([]) });
    expect(read).toBeLessThanOrEqual(5);
    expect(later).toBe(
      new HeadHashes(SID).chat({ closed: first.concat([turn(101)]), running: PersistentList.from<never>([]) }),
    );
  });
});

import { describe, expect, test } from '@jest/globals';
import { objectId, sessionId } from '../../../src/objects/ids.js';
import type { SetChanges } from '../../../src/objects/sets.js';
import { planUndo } from '../../../src/session/plan-undo.js';

const session = sessionId('s');
const [a, b, c] = [objectId('a'), objectId('b'), objectId('c')];
const steps = (...changes: readonly SetChanges[]) => changes.map((one, i) => ({ seq: i + 1, changes: one }));

describe('undoing a step', () => {
  test('reverses its changes of the active and the pinned set; the index keeps its entries', () => {
    const { verbs, undoes } = planUndo(
      session,
      steps({ index: [a, b, c], activate: [a], deactivate: [b], pin: [c], unpin: [a] }),
      1,
    );
    expect([undoes, verbs]).toEqual([1, { activate: [b], deactivate: [a], pin: [a], unpin: [c] }]);
  });

  test('restores ids that left and came back in the step', () => {
    const { verbs } = planUndo(session, steps({ activate: [a, b], deactivate: [a] }), 1);
    expect(verbs).toEqual({ deactivate: [b] });
    expect(() => planUndo(session, steps({ activate: [a], deactivate: [a] }), 1)).toThrow(/nothing/);
  });

  test('ignores later steps of other objects and is blocked by one of the same objects, which it names', () => {
    expect(planUndo(session, steps({ activate: [a] }, { activate: [b] }), 1).verbs).toEqual({ deactivate: [a] });
    const touched = [
      { seq: 1, changes: { activate: [a] } },
      { seq: 2, changes: {} },
      { seq: 3, changes: { pin: [a] } },
    ];
    expect(() => planUndo(session, touched, 1)).toThrow(
      expect.objectContaining({ code: 'changed-since', message: expect.stringContaining('step 3') }),
    );
  });

  test('can itself be undone, and is named if it blocks', () => {
    const undone = [
      { seq: 1, changes: { activate: [a] } },
      { seq: 2, changes: { deactivate: [a] }, undoes: 1 },
    ];
    expect(planUndo(session, undone, 2).verbs).toEqual({ activate: [a] });
    expect(() => planUndo(session, undone, 1)).toThrow(
      /step 2 of session s, which undoes step 1, changed the same objects/,
    );
  });

  test.each([
    [2, 'sequence-gap', /has no step 2: its last one is 1/],
    [1, 'nothing-to-undo', /only listed new objects/],
  ] as const)('refuses step %i as %s', (seq, code, message) => {
    const refused = expect.objectContaining({ code, message: expect.stringMatching(message) });
    expect(() => planUndo(session, steps({ index: [a] }), seq)).toThrow(refused);
  });
});

import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { nativeCallId } from '../../../src/harness/known-history.js';
import { type ObjectId, sessionId } from '../../../src/objects/ids.js';
import type { Step } from '../../../src/objects/step.js';
import { ChatPlaces } from '../../../src/session/chat-places.js';
import { applySteps, emptySession } from '../../../src/session/session-state.js';
import { effort } from '../../support/effort.js';

const given = fc.constantFrom('a', 'b', 'a@b', 'a~2', '@', 'a@', '~2');
const entries = fc.array(
  fc.oneof(
    fc.record({ native: fc.option(given, { nil: undefined }) }),
    fc
      .tuple(given, fc.constantFrom('', '@s', '@s~2', '~2', '@s@t'))
      .map(([id, marks]) => ({ call: `${id}${marks}` as ObjectId })),
    fc.constant({ event: { kind: 'shortened', kept: 0, missing: 0 } }),
  ),
  { maxLength: 30 },
);

const session = sessionId('walked');

/** Steps of a random chat, one entry each. */
function stepsOf(all: readonly object[]): readonly Step[] {
  return all.map((entry, i) => {
    const said = 'native' in entry ? { message: { role: 'user', text: `${i}` }, ...entry } : entry;
    const call = 'call' in entry ? { call: { id: entry.call, answer: { kind: 'content' } } } : {};
    return {
      session,
      seq: i + 1,
      turn: 1,
      ...(i === 0 ? { opens: 'message' } : {}),
      at: i + 1,
      changes: {},
      ...said,
      ...call,
    } as unknown as Step;
  });
}

test('finds the same places in a growing chat as a walk through all of it', () => {
  fc.assert(
    fc.property(entries, fc.array(fc.nat(30)), given, (all, cuts, id) => {
      const steps = stepsOf(all);
      const places = new ChatPlaces();
      for (const cut of [...cuts.sort((a, b) => a - b), steps.length])
        places.upTo(applySteps(emptySession(session), steps.slice(0, cut)));
      const { marks } = applySteps(emptySession(session), steps);
      expect(places.message(id)?.seq).toBe(marks.findLast(({ native }) => native === id)?.seq);
      const called = marks.flatMap(({ call, seq }) =>
        call !== undefined && nativeCallId(call, new Set([id])) === id ? [[call, seq]] : [],
      );
      expect(places.calls(id).map((place) => [place.id, place.seq])).toEqual(called);
    }),
    { numRuns: effort(200, 2_000) },
  );
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { objectId } from '../../../src/objects/ids.js';
import { type RetainedKind, type RetentionCandidate, retained } from '../../../src/session/retention.js';

const candidate = (id: string, more: Partial<RetentionCandidate> = {}): RetentionCandidate => ({
  id: objectId(id),
  kind: 'command',
  chars: 1_000,
  shown: 1,
  used: undefined,
  isRepeated: false,
  isHeld: false,
  ...more,
});
const ids = (candidates: readonly RetentionCandidate[], request = 60_000): readonly string[] =>
  retained(candidates, request);

describe('retention by use', () => {
  test('keeps a text for 22 calls after a display, eleven after a use, an edit for 220, a search for fewer', () => {
    expect(ids([candidate('a', { shown: 22 }), candidate('b', { shown: 23 })])).toEqual(['a']);
    expect(ids([candidate('a', { shown: 90, used: 11 }), candidate('b', { shown: 90, used: 12 })])).toEqual(['a']);
    expect(ids([candidate('a', { kind: 'search', shown: 8 }), candidate('b', { kind: 'search', shown: 9 })])).toEqual([
      'a',
    ]);
    expect(ids([candidate('a', { kind: 'edit', shown: 220 }), candidate('b', { kind: 'edit', shown: 221 })])).toEqual([
      'a',
    ]);
  });

  test('keeps texts longer in a small request than in a large one, and large texts longer than small ones', () => {
    expect(ids([candidate('a', { shown: 66 }), candidate('b', { shown: 67 })], 1_000)).toEqual(['a']);
    expect(ids([candidate('a', { shown: 11 }), candidate('b', { shown: 12 })], 120_000)).toEqual(['a']);
    expect(ids([candidate('a', { shown: 31, chars: 10_000 }), candidate('b', { shown: 31 })])).toEqual(['a']);
  });

  test('drops text that a later text repeats, and keeps held text at any cost', () => {
    expect(ids([candidate('a', { isRepeated: true }), candidate('b')])).toEqual(['b']);
    expect(ids([candidate('a', { isHeld: true, shown: 10_000, chars: 10_000_000 })])).toEqual(['a']);
  });

  test('keeps no more than the tokens allow, longest remaining lifetime first', () => {
    const large = { chars: 130_000 };
    expect(ids([candidate('a', { ...large, shown: 9 }), candidate('b', { ...large, shown: 1 })])).toEqual(['b']);
  });

  test('returns the same ids in order for the same candidates, and drops an equal older one first', () => {
    const kinds: readonly RetainedKind[] = ['file', 'read', 'command', 'search', 'edit', 'other'];
    const any = fc.record({
      kind: fc.constantFrom(...kinds),
      chars: fc.nat(50_000),
      shown: fc.integer({ min: 1, max: 100 }),
      isHeld: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(any), fc.integer({ min: 1, max: 300_000 }), (given, request) => {
        const candidates = given.map((one, i) => candidate(`id ${i}`, one));
        const kept = ids(candidates, request);
        expect(ids(candidates, request)).toEqual(kept);
        expect(kept).toEqual(candidates.map(({ id }) => id).filter((id) => kept.includes(id)));
        const loose = candidates.filter(({ id, isHeld }) => kept.includes(id) && !isHeld);
        const held = candidates.filter(({ isHeld }) => isHeld).reduce((sum, { chars }) => sum + chars, 0);
        expect(held + loose.reduce((sum, { chars }) => sum + chars, 0)).toBeLessThanOrEqual(
          Math.max(held, (40_000 + 0.4 * request) * 3.6),
        );
      }),
    );
  });
});

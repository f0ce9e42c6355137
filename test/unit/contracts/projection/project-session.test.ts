import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { nativeId } from '../../../../src/contracts/projection/measured-entries.js';
import { projectSession } from '../../../../src/contracts/projection/project-session.js';
import { objectId } from '../../../../src/objects/ids.js';
import { BYTES, type Happening, happenings, projectionOf, sourceOf } from '../../../support/any-session.js';
import { entryFindings } from '../../../support/pair-check.js';

const user = (text: string): Happening => ({ kind: 'user', text });
const said = (text: string): Happening => ({ kind: 'said', text });
const calls = (...when: readonly ('now' | 'late' | 'never')[]): Happening => ({
  kind: 'calls',
  text: 'I look',
  calls: when.map((one, i) => ({ output: `output ${i}`, args: { path: `${i}.ts` }, when: one })),
});

describe('a session as ordered entries', () => {
  test('gives each entry an id, a place and the hash of its text', () => {
    const { entries, digest, running } = projectionOf([
      user('Look'),
      calls('now', 'now'),
      said('Done'),
      user('And now'),
    ]);
    expect(entries.map(({ id, turn, index, seq }) => [id, turn, index, seq])).toEqual([
      ['system', 0, 1, 0],
      ['m1', 1, 1, 1],
      ['m2', 1, 2, 2],
      ['r3', 1, 3, 3],
      ['r4', 1, 4, 4],
      ['m5', 1, 5, 5],
      ['m6', 2, 1, 6],
    ]);
    expect(entries.map(({ kind }) => kind)).toEqual([
      'system',
      'user',
      'assistant',
      'result',
      'result',
      'assistant',
      'user',
    ]);
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    expect(running?.turn).toBe(2);
  });

  test('puts a result after the message with its call, with anything in between', () => {
    const { entries } = projectionOf([user('Look'), calls('late', 'now'), { kind: 'system', text: 'Note' }]);
    expect(entries.slice(2).map(({ id }) => id)).toEqual(['m2', 'r3', 'r5', 'm4']);
  });

  test('puts calls without a message into an empty one', () => {
    const { entries } = projectionOf([user('Look'), { kind: 'call', output: 'found', deactivates: false }]);
    expect(entries[2]).toMatchObject({ kind: 'assistant', id: 'c2', text: '', calls: [{ state: 'answered' }] });
    expect(entries[3]).toMatchObject({ kind: 'result', of: 'c2', text: 'found', active: true });
  });

  test('marks running work: pending calls, approvals, a turn without a final message', () => {
    const pending = projectionOf([user('Look'), calls('now', 'never')]);
    expect(pending.running?.calls.map(({ native, state }) => [native, state])).toEqual([['call_2_1', 'pending']]);
    const asked = projectionOf([
      user('Look'),
      said('May I?'),
      { kind: 'approval', text: 'rm -r build', state: 'pending' },
    ]);
    expect(asked.running).toMatchObject({ turn: 1, calls: [], approvals: [asked.entries.at(-1)?.id] });
    expect(projectionOf([user('Look'), said('Done')]).running).toBeUndefined();
    // Requested before the first step.
    const source = sourceOf([user('Look'), said('Done')]);
    const early = { approval: 'early', state: 'pending', text: 'May I begin?', turn: 1, seq: 0, at: 1_000 } as const;
    const { entries } = projectSession({ ...source, approvals: [early] }, BYTES);
    expect(entries.filter(({ kind }) => kind === 'approval')).toHaveLength(1);
    expect(projectionOf([]).running).toBeUndefined();
  });

  test('ends a pending call with its result', () => {
    const source = sourceOf([user('Look'), calls('now')]);
    const { entries } = projectSession(
      { ...source, pending: [{ native: 'call_2_0', tool: 'bash', args: {}, by: 2, at: 1 }] },
      BYTES,
    );
    expect(entries[2]).toMatchObject({ calls: [{ state: 'answered' }] });
    const later = projectSession(
      { ...source, pending: [{ native: 'call_2_0', tool: 'bash', args: {}, by: 3, at: 1 }] },
      BYTES,
    );
    expect(later.running?.calls).toHaveLength(1);
  });

  test('visits each call a few times only, for any number of calls and messages in a turn', () => {
    const count = 300;
    const source = sourceOf(Array.from({ length: count }, () => calls('now')));
    let looks = 0;
    const pending = Array.from({ length: count }, (_, i) => ({
      native: `waits_${i}`,
      tool: 'bash',
      args: {},
      at: 1,
      get by() {
        looks += 1;
        return 2 * i + 1;
      },
    }));
    const { running } = projectSession({ ...source, pending }, BYTES);
    expect(running?.calls.map(({ native }) => native)).toEqual(pending.map(({ native }) => native));
    expect(looks).toBeLessThanOrEqual(5 * count);
  });

  test.each([
    ['call_1', 'call_1'],
    ['call_1@s', 'call_1'],
    ['call_1@s~2', 'call_1'],
    ['a@b@s', 'a@b'],
    ['s:4', 's:4'],
  ])('maps %s to %s of its source', (stored, native) => {
    expect(nativeId(objectId(stored))).toBe(native);
  });

  test('is deterministic with whole pairs, rising places and unique ids; an earlier basis is a prefix', () => {
    fc.assert(
      fc.property(happenings, (all) => {
        const one = projectionOf(all);
        expect(projectionOf(all)).toEqual(one);
        const open = new Set<string>(
          one.entries.flatMap((entry) =>
            entry.kind === 'assistant'
              ? entry.calls.filter(({ state }) => state === 'pending').map(({ id }) => id)
              : [],
          ),
        );
        const broken = entryFindings(one.entries).filter(
          ({ rule, call }) => rule !== 'unfinished-turn' && !(rule === 'missing-result' && open.has(call ?? '')),
        );
        expect(broken).toEqual([]);
        expect(new Set(one.entries.map(({ id }) => id)).size).toBe(one.entries.length);
        const places = one.entries.map(({ turn, index }) => turn * 1_000 + index);
        expect(places).toEqual(places.toSorted((a, b) => a - b));
        const closed = one.entries.filter(({ turn }) => turn < Math.max(1, one.turn));
        const source = sourceOf(all);
        const earlier = projectSession(
          { ...source, steps: source.steps.filter(({ turn }) => turn < one.turn), approvals: [], pending: [] },
          BYTES,
        );
        expect(earlier.entries.filter(({ kind }) => kind !== 'result').map(({ id }) => id)).toEqual(
          closed.filter(({ kind }) => kind !== 'result' && kind !== 'approval').map(({ id }) => id),
        );
      }),
    );
  });
});

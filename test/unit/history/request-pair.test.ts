import { describe, expect, test } from '@jest/globals';
import { objectId } from '../../../src/objects/ids.js';
import type { SetChanges } from '../../../src/objects/sets.js';
import { ActsBetween } from '../../../src/review/ask/request-pair.js';
import type { Request, RequestReader } from '../../../src/review/ask/request-reader.js';

const FILE = objectId('file');

/** A request after a step, in an epoch if it has one. */
const requestAt = (step: number, epoch?: { readonly number: number; readonly border: number }): Request =>
  ({ side: { step }, of: { step, proof: { step, epoch } } }) as unknown as Request;

/** Reads the acts between requests after steps 1 and 4 of a session with these changes. */
function actsBetween(changes: readonly SetChanges[], from = requestAt(1), to = requestAt(4)): Promise<ActsBetween> {
  const steps = changes.map((one, i) => ({ seq: i + 1, changes: one, call: { id: objectId(`call_${i + 1}`) } }));
  const calls = new Map(steps.map(({ seq, call }) => [call.id, { head: `tool_${seq} {}`, output: '' }]));
  return ActsBetween.read({ steps, calls, read: async () => undefined } as unknown as RequestReader, { from, to });
}

describe('the acts between two requests', () => {
  test('are the steps after the first request, up to the second, in either order of the two', async () => {
    const changes = [{}, {}, {}, {}, {}];
    for (const [from, to] of [
      [requestAt(1), requestAt(4)],
      [requestAt(4), requestAt(1)],
    ] as const)
      expect((await actsBetween(changes, from, to)).steps.map(({ seq }) => seq)).toEqual([2, 3, 4]);
  });

  test('name the last step that changed an object, and its first change by the wanted order', async () => {
    const acts = await actsBetween([
      { deactivate: [FILE] },
      { deactivate: [FILE] },
      { index: [FILE], activate: [FILE] },
      {},
    ]);
    const found = acts.setChange(FILE, ['deactivate', 'activate', 'index']);
    expect([found?.step.seq, found?.change]).toEqual([3, 'activate']);
    expect(found && acts.authorOf(found.step)).toBe('tool_3');
    expect(acts.setChange(FILE, ['index', 'activate'])?.change).toBe('index');
    expect(acts.setChange(objectId('other'), ['activate'])).toBeUndefined();
  });

  test('name an epoch only if the second request began it', async () => {
    const [one, two] = [
      { number: 1, border: 1 },
      { number: 2, border: 3 },
    ];
    const newEpoch = async (before: typeof one | undefined, after: typeof one | undefined) =>
      (await actsBetween([], requestAt(1, before), requestAt(4, after))).newEpoch;
    expect(await newEpoch(one, two)).toEqual(two);
    expect(await newEpoch(undefined, one)).toEqual(one);
    expect(await newEpoch(one, { number: 1, border: 2 })).toEqual({ number: 1, border: 2 });
    expect(await newEpoch(one, one)).toBeUndefined();
    expect(await newEpoch(one, undefined)).toBeUndefined();
  });
});

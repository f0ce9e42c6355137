import { describe, expect, test } from '@jest/globals';
import { ofOneCall } from '../../../src/page/call-rows.js';
import { newParts } from '../../../src/page/new-parts.js';
import type { ConversationRow, RequestItem, RequestView, Strip } from '../../../src/page/wire.js';
import { percentsOf } from '../../../src/page/words.js';

const rowOf = (kind: ConversationRow['kind'], step: number, role?: string): ConversationRow =>
  ({ kind, step, turn: 1, role }) as unknown as ConversationRow;
const callsAt = (...steps: readonly number[]): Strip['calls'] =>
  steps.map((step) => ({
    step,
    turn: 1,
    kind: 'transcript',
    delivered: null,
    sections: [{ name: 'chat', chars: 9 }],
  })) as unknown as Strip['calls'];

describe('the rows of one call', () => {
  const rows = [
    rowOf('turn', 1),
    rowOf('message', 1, 'user'),
    rowOf('message', 2, 'assistant'),
    rowOf('call', 3),
    rowOf('change', 4),
    rowOf('call', 4),
    rowOf('message', 5, 'assistant'),
  ];
  const calls = callsAt(1, 4);

  test('are its answer, its tool calls, and changes between them', () => {
    for (const chosen of [2, 3, 5]) expect(ofOneCall(rows, rows[chosen], calls)).toEqual(rows.slice(2, 6));
    expect(ofOneCall(rows, rows[6], calls)).toEqual([rows[6]]);
  });

  test('are the row alone for a prompt, and for a call whose number stands for a whole turn', () => {
    expect(ofOneCall(rows, rows[1], calls)).toEqual([rows[1]]);
    const turns = calls.map((call) => ({ ...call, sections: [] }));
    expect(ofOneCall(rows, rows[3], turns)).toEqual([rows[3]]);
    expect(ofOneCall(rows, undefined, calls)).toEqual([]);
  });
});

describe('the new parts of a request', () => {
  const item = (more: Partial<RequestItem>): RequestItem =>
    ({ form: 'text', step: null, object: null, version: null, ...more }) as RequestItem;
  const strip = {
    calls: [{ step: 4, at: '2026-01-01T00:00:00.000Z' }],
    bands: [
      { id: 'old', changes: [{ step: 2, state: 'active' }] },
      {
        id: 'loaded',
        changes: [
          { step: 2, state: 'line' },
          { step: 5, state: 'active' },
        ],
      },
    ],
  } as unknown as Strip;
  const view = { request: { step: 6 }, previous: 4 } as unknown as RequestView;

  test('came after the previous request: messages, calls, loaded texts and later versions', () => {
    const isNew = newParts(view, strip);
    const later = { number: 2, valid_time: '2026-01-01T00:00:01.000Z', tx_id: 1 };
    const parts = [
      item({ step: 4 }),
      item({ step: 5 }),
      item({ object: 'old' }),
      item({ object: 'old', version: later }),
      item({ object: 'loaded' }),
      item({ object: 'loaded', form: 'line' }),
      item({}),
    ];
    expect(parts.map(isNew)).toEqual([false, true, false, true, true, false, false]);
  });

  test('are none of the first request', () =>
    expect(newParts({ ...view, previous: null }, strip)(item({ step: 5 }))).toBe(false));
});

test('percents of parts add up to 100', () => {
  expect(percentsOf([1, 1, 1])).toEqual([34, 33, 33]);
  expect(percentsOf([99, 297, 459, 52])).toEqual([11, 33, 50, 6]);
  expect(percentsOf([0, 0])).toEqual([0, 0]);
});

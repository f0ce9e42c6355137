import { describe, expect, test } from '@jest/globals';
import { countedTexts } from '../../../src/page/counted-texts.js';
import {
  bandRows,
  columnOf,
  fillOf,
  inColumns,
  makerOf,
  marksByColumn,
  namedTurns,
  neighbour,
  requestOf,
  requestWith,
  type SortedRows,
  seenRange,
  sortedRows,
  turnSpans,
  usedTokens,
} from '../../../src/page/strip-layout.js';
import type { Strip, StripBand, StripCall, StripMark } from '../../../src/page/wire.js';

const call = (turn: number, step: number, more: Partial<StripCall> = {}): StripCall => ({
  kind: 'sent',
  turn,
  step,
  at: '2026-01-01T00:00:00.000Z',
  delivered: 'library',
  chars: 10,
  sections: [{ name: 'chat', chars: 10 }],
  epoch: null,
  usage: null,
  ...more,
});
const band = (id: string, changes: StripBand['changes'], type: StripBand['type'] = 'file'): StripBand => ({
  id,
  type,
  name: `${id}.ts`,
  tool: null,
  failed: false,
  chars: 100,
  changes,
});
const calls = [call(1, 2), call(1, 4), call(2, 7), call(3, 9)];

describe('the layout of a strip', () => {
  test('puts what is known of some calls into their columns', () => {
    const strip = { calls } as unknown as Strip;
    const prices = [{ step: 4 }, { step: 9 }];
    expect(inColumns(prices, strip)).toEqual([undefined, { step: 4 }, undefined, { step: 9 }]);
    expect(inColumns(prices, undefined)).toBe(prices);
  });

  test.each([
    [1, 0],
    [2, 0],
    [3, 1],
    [4, 1],
    [8, 3],
    [10, 4],
  ])('counts step %i first in column %i', (step, column) => expect(columnOf(calls, step)).toBe(column));

  // The request of a call ends before its answer, so it never has the call's own result.
  test.each([
    [3, 1, 2],
    [4, 1, 2],
    [5, 2, 4],
    [7, 2, 4],
    [10, 4, 9],
  ])('says that step %i came from call %i, whose request ends at step %i', (step, maker, request) => {
    expect([makerOf({ calls }, step), requestOf({ calls }, step)]).toEqual([maker, request]);
  });

  test('finds the first request with a step, and the turn of a session without requests', () => {
    expect([3, 7, 10].map((step) => requestWith({ calls }, step))).toEqual([4, 7, 10]);
    const ends = [call(1, 4), call(2, 9)].map((one) => ({ ...one, delivered: null, sections: [] }));
    expect([makerOf({ calls: ends }, 6), requestOf({ calls: ends }, 6)]).toEqual([2, 5]);
  });

  test('draws a band from the first call that includes its step to the next change', () => {
    const changes = [
      { step: 3, state: 'line' as const },
      { step: 7, state: 'active' as const },
      { step: 8, state: 'line' as const },
    ];
    const [row] = bandRows([band('a', changes)], calls);
    expect(row?.spans).toEqual([
      { from: 1, to: 2, state: 'line' },
      { from: 2, to: 3, state: 'active' },
      { from: 3, to: 4, state: 'line' },
    ]);
  });

  test('omits an object that came and went between two calls', () => {
    const changes = [
      { step: 5, state: 'active' as const },
      { step: 6, state: 'line' as const },
    ];
    expect(bandRows([band('a', changes)], calls)[0]?.spans).toEqual([{ from: 2, to: 4, state: 'line' }]);
  });

  test('sorts rows by the context of a call: pinned first, then by size', () => {
    const rows = bandRows(
      [
        band('small', [{ step: 1, state: 'active' }], 'toolcall'),
        { ...band('large', [{ step: 1, state: 'active' }]), chars: 500 },
        band('pinned', [{ step: 1, state: 'pinned' }]),
        band('later', [{ step: 8, state: 'active' }]),
        band('lined', [{ step: 1, state: 'line' }]),
      ],
      calls,
    );
    const ids = ({ present, elsewhere, lines }: SortedRows) =>
      [present, elsewhere, lines].map((own) => own.map((row) => row.band.id));
    expect(ids(sortedRows(rows, 0))).toEqual([['pinned', 'large', 'small'], ['later'], ['lined']]);
    expect(ids(sortedRows(rows, 3))).toEqual([['pinned', 'large', 'small', 'later'], [], ['lined']]);
    expect(ids(sortedRows(rows, 0, { name: 'LIN' }))).toEqual([[], [], ['lined']]);
    const counts = new Map([['small', 900]]);
    expect(ids(sortedRows(rows, 0, { counts }))).toEqual([['pinned', 'small', 'large'], ['later'], ['lined']]);
  });

  test('lists a file beside the calls that have its text in a transcript, so that each text counts once', () => {
    const rows = bandRows(
      [band('read', [{ step: 1, state: 'active' }], 'toolcall'), band('file', [{ step: 1, state: 'active' }])],
      calls,
    );
    const idsOf = (own: readonly { readonly band: StripBand }[]) => own.map((row) => row.band.id);
    const { present, files } = sortedRows(rows, 1, { isTranscript: true });
    expect([idsOf(present), idsOf(files)]).toEqual([['read'], ['file']]);
    const sent = sortedRows(rows, 1);
    expect([idsOf(sent.present), idsOf(sent.files)]).toEqual([['read', 'file'], []]);
  });

  test('counts the texts of a request by object, without the lines that only name one', () => {
    const item = (object: string | null, form: string, tokens: number) => ({ object, form, tokens });
    const items = [item('a', 'line', 9), item('a', 'text', 100), item(null, 'message', 50), item('a', 'text', 20)];
    expect(countedTexts({ items } as unknown as Parameters<typeof countedTexts>[0])).toEqual({
      total: 179,
      byObject: new Map([['a', 120]]),
    });
  });

  test('names the longest turns above the columns, none too near to another', () => {
    const spans = [
      { turn: 1, from: 0, to: 36 },
      { turn: 2, from: 36, to: 37 },
      { turn: 3, from: 37, to: 253 },
      { turn: 4, from: 253, to: 254 },
    ];
    expect(namedTurns(spans, 254, 24)).toEqual(new Set([3, 1, 4]));
    expect(namedTurns(spans, 254, 1)).toEqual(new Set([3]));
  });

  test('names the turns over the columns', () =>
    expect(turnSpans(calls)).toEqual([
      { turn: 1, from: 0, to: 2 },
      { turn: 2, from: 2, to: 3 },
      { turn: 3, from: 3, to: 4 },
    ]));

  test('lays out only the visible window, for any size', () => {
    expect(seenRange(5_000, 500, { each: 10, count: 10_000, spare: 4 })).toEqual({ from: 496, to: 554 });
    expect(seenRange(0, 500, { each: 10, count: 3 })).toEqual({ from: 0, to: 3 });
  });

  test('fills calls without a context with what was active then', () => {
    const ends = [call(1, 2, { chars: null, sections: [] }), call(2, 7, { chars: null, sections: [] })];
    const rows = bandRows([band('a', [{ step: 3, state: 'active' }])], ends);
    expect(fillOf(ends, rows)).toMatchObject({ sections: [{ name: 'active', sizes: [0, 28] }], totals: [0, 28] });
    expect(fillOf(calls, rows)).toMatchObject({ sections: [{ name: 'chat' }], totals: [3, 3, 3, 3] });
    expect(usedTokens(call(1, 2))).toBeUndefined();
    expect(usedTokens(call(1, 2, { usage: { input: 3, cache_read: 4 } }))).toBe(7);
  });

  test('puts a mark at the first call after it', () => {
    const mark: StripMark = {
      step: 5,
      at: '',
      kind: 'event',
      number: null,
      reason: null,
      price: null,
      tool: null,
      event: 'compacted',
      object: null,
      by: null,
    };
    expect([...marksByColumn([mark, { ...mark, step: 99 }], calls).keys()]).toEqual([2, 3]);
  });

  test.each([
    [4, 'next', 7],
    [4, 'previous', 2],
    [2, 'previous', undefined],
    [2, 'next-turn', 7],
    [9, 'previous-turn', 7],
    [7, 'previous-turn', 2],
    [9, 'next', undefined],
  ] as const)('goes from step %i with %s to %s', (step, move, to) =>
    expect(neighbour(calls, step, move)?.step).toBe(to),
  );
});

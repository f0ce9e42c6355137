import { describe, expect, test } from '@jest/globals';
import { bandWays, callRanges } from '../../../src/history/search/exposure.js';
import { linesWith } from '../../../src/history/search/found-lines.js';
import type { ObjectId } from '../../../src/objects/ids.js';
import { outOfOrder } from '../../../src/page/server/call-changes.js';
import { requestItems } from '../../../src/review/ask/request-items.js';

const id = (name: string) => name as ObjectId;

describe('changes from call to call', () => {
  test.each([
    [[0, 1, 2, 3], []],
    [[1, 2, 3, 0], [0]],
    [[3, 0, 1, 2], [3]],
    [[2, 1], [2]],
    [[], []],
  ])('of %j have %j out of order', (numbers, moved) => expect([...outOfOrder(numbers)]).toEqual(moved));

  test('compare the pool line by line and lose nothing of a request', () => {
    const pool = [{ id: id('a1') }, { id: id('b2') }] as unknown as Parameters<typeof requestItems>[1];
    const pieces = [
      { section: 'system', text: 'You are careful.\n' },
      { section: 'pool', text: '\nid=a1 type=file\nid=b type=file\nwhat is this\n' },
      { section: 'active', text: 'text of a', object: id('a1') },
    ] as const;
    const items = requestItems(pieces, pool);
    expect(items.map(({ form, object }) => [form, object])).toEqual([
      ['plain', undefined],
      ['plain', undefined],
      ['line', 'a1'],
      ['line', 'b2'],
      ['plain', undefined],
      ['text', 'a1'],
    ]);
    expect(items.map(({ text }) => text).join('')).toBe(pieces.map(({ text }) => text).join(''));
  });
});

describe('the path of an object through the sets', () => {
  const steps = [
    { seq: 1, changes: { index: [id('f')], activate: [id('f')] } },
    { seq: 2, changes: { pin: [id('f')] } },
    { seq: 3, changes: { unpin: [id('f')], deactivate: [id('f')] } },
    { seq: 4, changes: { index: [id('g')] } },
  ];

  test('has one state per step, the strongest one after the step', () => {
    const ways = bandWays(steps);
    expect(ways.get(id('f'))).toEqual([
      { step: 1, state: 'active' },
      { step: 2, state: 'pinned' },
      { step: 3, state: 'line' },
    ]);
    expect(ways.get(id('g'))).toEqual([{ step: 4, state: 'line' }]);
  });
});

describe('a search', () => {
  test('finds places with their lines, case-insensitively unless case matters', () => {
    const text = 'One two\nthree ONE\n\none one';
    expect(linesWith(text, 'one')).toEqual({
      count: 4,
      lines: [
        { line: 1, excerpt: 'One two', marks: [{ at: 0, end: 3 }] },
        { line: 2, excerpt: 'three ONE', marks: [{ at: 6, end: 9 }] },
        {
          line: 4,
          excerpt: 'one one',
          marks: [
            { at: 0, end: 3 },
            { at: 4, end: 7 },
          ],
        },
      ],
    });
    expect(linesWith(text, 'One')).toMatchObject({ count: 1, lines: [{ line: 1, excerpt: 'One two' }] });
    expect(linesWith(text, 'four')).toEqual({ count: 0, lines: [] });
    expect(linesWith(`${'x'.repeat(500)}needle${'y'.repeat(500)}`, 'needle').lines[0]?.excerpt).toHaveLength(166);
  });

  test('reports consecutive calls as ranges', () => {
    expect(callRanges([2, 4, 7, 9], (step) => step !== 7)).toEqual([
      { from: 2, to: 4, calls: 2 },
      { from: 9, to: 9, calls: 1 },
    ]);
  });
});

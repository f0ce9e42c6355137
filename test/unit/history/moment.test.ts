import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { HistoryError } from '../../../src/history/rebuild/history-error.js';
import {
  askedMoment,
  formatMoment,
  type Moment,
  parseMoment,
  parseRange,
  parseReference,
  parseTime,
} from '../../../src/history/rebuild/moment.js';

const codeOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    return error instanceof HistoryError ? error.code : String(error);
  }
  return 'none';
};

describe('moments', () => {
  test.each<[string, Moment]>([
    ['now', { kind: 'now' }],
    ['@turn:7', { kind: 'turn', turn: 7 }],
    ['turn:7.3', { kind: 'turn', turn: 7, step: 3 }],
    ['step:41', { kind: 'step', seq: 41 }],
    ['@tx:0', { kind: 'tx', txId: 0 }],
    ['@2026-11-21T14:05Z', { kind: 'time', time: new Date('2026-11-21T14:05:00Z') }],
    ['2026-11-21', { kind: 'time', time: new Date('2026-11-21T00:00:00Z') }],
    ['2026-11-21 14:05:30.5', { kind: 'time', time: new Date('2026-11-21T14:05:30.500Z') }],
    ['2026-11-21T14:05+02:00', { kind: 'time', time: new Date('2026-11-21T12:05:00Z') }],
    ['2026-11-21T14:05:30.123456-0130', { kind: 'time', time: new Date('2026-11-21T15:35:30.123Z') }],
  ])('are read from %s', (text, moment) => {
    expect(parseMoment(text)).toEqual(moment);
  });

  test.each([
    '',
    'turn:',
    'turn:0',
    'turn:x',
    'turn:1.2.3',
    'turn:-1',
    'step:0',
    'tx:1.5',
    'tx:',
    'yesterday',
    '2026-13-01',
    '2026-02-30',
    '2026-11-21T25:00',
    '14:05',
    '@@now',
  ])('are refused for %j, with the valid forms named', (text) => {
    expect(codeOf(() => parseMoment(text))).toBe('malformed-moment');
    expect(() => parseMoment(text)).toThrow(/turn:7.*tx:123/);
  });

  test('read back as they are printed', () => {
    const moments = fc.oneof(
      fc.constant<Moment>({ kind: 'now' }),
      fc.record({ kind: fc.constant('turn' as const), turn: fc.integer({ min: 1, max: 1e6 }) }),
      fc.record({ kind: fc.constant('turn' as const), turn: fc.integer({ min: 1 }), step: fc.integer({ min: 1 }) }),
      fc.record({ kind: fc.constant('tx' as const), txId: fc.nat() }),
      fc
        .date({ min: new Date('1970-01-01T00:00:00Z'), max: new Date('9999-12-31T00:00:00Z'), noInvalidDate: true })
        .map((time): Moment => ({ kind: 'time', time })),
    );
    fc.assert(fc.property(moments, (moment) => expect(parseMoment(formatMoment(moment))).toEqual(moment)));
  });

  test('use UTC without a zone', () => {
    expect(parseTime('2026-07-01T12:00').toISOString()).toBe('2026-07-01T12:00:00.000Z');
  });
});

describe('references', () => {
  test.each([
    ['src/a.ts@turn:7', 'src/a.ts', 'turn:7'],
    ['node_modules/@types/node/index.d.ts', 'node_modules/@types/node/index.d.ts', undefined],
    ['a@b@tx:9', 'a@b', 'tx:9'],
    ['call_1@s1', 'call_1@s1', undefined],
    ['call_1@s1@2026-11-21T14:05Z', 'call_1@s1', '2026-11-21T14:05:00.000Z'],
    ['@turn:7', '@turn:7', undefined],
  ])('are parsed into a name and a moment: %s', (text, name, moment) => {
    const read = parseReference(text);
    expect([read.name, read.moment === undefined ? undefined : formatMoment(read.moment)]).toEqual([name, moment]);
  });

  test('keep an invalid moment out of the name', () => {
    expect(codeOf(() => parseReference('a.ts@turn:x'))).toBe('malformed-moment');
    expect(codeOf(() => parseReference('a.ts@2026-99-01'))).toBe('malformed-moment');
  });
});

describe('ranges', () => {
  test.each([
    ['turn:3..turn:7', 'turn:3', 'turn:7'],
    ['3..7', 'turn:3', 'turn:7'],
    ['turn3..turn7.2', 'turn:3', 'turn:7.2'],
    ['tx:10..', 'tx:10', 'now'],
    ['..tx:12', undefined, 'tx:12'],
    ['2026-11-20..2026-11-21T01:00Z', '2026-11-20T00:00:00.000Z', '2026-11-21T01:00:00.000Z'],
  ])('are parsed into two moments: %s', (text, from, to) => {
    const range = parseRange(text);
    expect([range.from === undefined ? undefined : formatMoment(range.from), formatMoment(range.to)]).toEqual([
      from,
      to,
    ]);
  });

  test.each(['', '..', '7', 'tx:1...tx:2', 'tx:1..tx:2..tx:3', 'a..b'])('refuse %j', (text) => {
    expect(codeOf(() => parseRange(text))).toBe('malformed-moment');
  });
});

test('accept now on either clock, as the list of forms says', () => {
  expect(askedMoment({ validTime: 'now', tx: 'now' })).toEqual({
    moment: undefined,
    validTime: undefined,
    tx: undefined,
  });
});

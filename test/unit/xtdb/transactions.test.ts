import { describe, expect, test } from '@jest/globals';
import { EdnMap, kwMap } from '../../../src/edn/values.js';
import { XtdbError } from '../../../src/xtdb/errors.js';
import { encodeTransaction, readReceipt, type TxOp } from '../../../src/xtdb/transactions.js';

const refusalOf = (ops: readonly unknown[]): XtdbError => {
  try {
    encodeTransaction(ops as readonly TxOp[]);
  } catch (error) {
    if (error instanceof XtdbError) return error;
    throw error;
  }
  throw new Error('expected a refusal');
};

const doc = { 'xt/id': 'a', type: 'file' };

describe('a submission', () => {
  test('writes each kind of operation in XTDB’s form', () => {
    const text = encodeTransaction([
      { op: 'match', id: 'a', doc: null },
      { op: 'match', id: 'b', doc, validTime: new Date(1) },
      { op: 'put', doc },
      { op: 'put', doc, validTime: new Date(1) },
    ]);
    expect(JSON.parse(text)).toEqual([
      '^ ',
      '~:tx-ops',
      [
        ['~:xtdb.api/match', 'a', null],
        ['~:xtdb.api/match', 'b', ['^ ', '~:xt/id', 'a', '~:type', 'file'], '~m1'],
        ['~:xtdb.api/put', ['^ ', '~:xt/id', 'a', '~:type', 'file']],
        ['~:xtdb.api/put', ['^ ', '~:xt/id', 'a', '~:type', 'file'], '~m1'],
      ],
    ]);
  });

  test('keeps an id that looks like transit or EDN as a string', () => {
    expect(JSON.parse(encodeTransaction([{ op: 'match', id: '~:xt/id', doc: null }]))[2][0][1]).toBe('~~:xt/id');
  });

  const wrong: readonly (readonly [string, readonly unknown[]])[] = [
    ['no operations', []],
    ['an empty id', [{ op: 'match', id: '', doc: null }]],
    ['an id with a lone surrogate', [{ op: 'match', id: '\ud83d', doc: null }]],
    ['an invalid time', [{ op: 'put', doc, validTime: new Date(Number.NaN) }]],
    ['an attribute that is not on the list', [{ op: 'put', doc: { ...doc, 'xt/fn': 'x' } }]],
  ];
  test.each(wrong)('is refused with %s before it is sent', (_name, ops) => {
    const refusal = refusalOf(ops);
    expect(refusal.code).toBe('bad-request');
    expect(refusal.outcomeUnknown).toBe(false);
  });
});

describe('a receipt', () => {
  test('has a transaction id and time', () => {
    expect(readReceipt(kwMap({ 'xtdb.api/tx-id': 3, 'xtdb.api/tx-time': new Date(5) }))).toEqual({
      txId: 3,
      txTime: new Date(5),
    });
  });

  test.each([
    undefined,
    null,
    'x',
    new EdnMap([]),
    kwMap({ 'xtdb.api/tx-id': 3 }),
    kwMap({ 'xtdb.api/tx-id': 'x', 'xtdb.api/tx-time': new Date(5) }),
  ])('is invalid as %p', (value) => {
    expect(() => readReceipt(value)).toThrow(XtdbError);
  });
});

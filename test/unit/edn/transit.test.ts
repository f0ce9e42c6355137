import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { EdnError, type EdnErrorCode } from '../../../src/edn/errors.js';
import { decodeForeignTransit, decodeTransit, encodeTransit, UNREADABLE } from '../../../src/edn/transit.js';
import {
  EdnDouble,
  EdnList,
  EdnMap,
  EdnSet,
  EdnTagged,
  type EdnValue,
  kw,
  kwMap,
  list,
  sym,
} from '../../../src/edn/values.js';
import { anyText } from '../../support/any-text.js';

const codeOf = (act: () => unknown): EdnErrorCode | undefined => {
  try {
    act();
  } catch (error) {
    if (error instanceof EdnError) return error.code;
    throw error;
  }
  return undefined;
};

const roundTrip = (value: EdnValue): EdnValue => decodeTransit(encodeTransit(value));

describe('writing transit', () => {
  test('has the documented wire form of a submission', () => {
    const doc = new EdnMap([kw('xt/id'), 'a', kw('args'), new EdnMap(['~:a', 1, '^ ', 2, ':x', null])]);
    expect(encodeTransit(kwMap({ 'tx-ops': [[kw('xtdb.api/put'), doc, new Date(5)]] }))).toBe(
      '["^ ","~:tx-ops",[["~:xtdb.api/put",["^ ","~:xt/id","a","~:args",["^ ","~~:a",1,"~^ ",2,":x",null]],"~m5"]]]',
    );
  });

  test('writes whole numbers as longs, fractions as doubles, and tags a number beyond the longs as a double', () => {
    expect(encodeTransit([1, -0, 1.5, Number.MAX_SAFE_INTEGER, new EdnDouble(1e20)])).toBe(
      '[1,0,1.5,9007199254740991,"~d100000000000000000000"]',
    );
    expect(roundTrip([new EdnDouble(1e20)])).toEqual([1e20]);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])('refuses the number %d', (number) => {
    expect(codeOf(() => encodeTransit([number]))).toBe('bad-number');
  });

  const foreign: readonly unknown[] = [undefined, () => 1, 10n, {}, { constructor: 1 }, new Map(), Buffer.from('x')];
  test.each(foreign)('refuses %p', (value) => {
    expect(codeOf(() => encodeTransit([value as EdnValue]))).toBe('not-a-value');
  });

  test('refuses lone surrogates, invalid dates and endless nesting', () => {
    let deep: EdnValue = [];
    for (let i = 0; i < 20_000; i += 1) deep = [deep];
    expect(codeOf(() => encodeTransit(['\ud83d']))).toBe('bad-string');
    expect(codeOf(() => encodeTransit(new Date(Number.NaN)))).toBe('not-a-value');
    expect(codeOf(() => encodeTransit(deep))).toBe('too-deep');
  });
});

describe('reading transit', () => {
  test('refuses a log hash that is not a string, and reads one under a cached tag', () => {
    expect(decodeTransit('[["~#xtdb/oid","00ff"],["^0","11aa"]]')).toEqual([
      new EdnTagged('xtdb/oid', '00ff'),
      new EdnTagged('xtdb/oid', '11aa'),
    ]);
    expect(codeOf(() => decodeTransit('[["~#xtdb/oid",["^ ","a",1]]]'))).toBe('unsupported');
  });

  test('reads rows with documents, cached keys and tagged ids', () => {
    const text =
      '["~#list",[["a",["^ ","~:xt/id","a","~:type","file"]],["b",["^ ' +
      '","^1","b","^2","file"]],["c",["~#xtdb/oid","00ff"]],["d","~m1700000000123"]]]';
    expect(decodeTransit(text)).toEqual(
      new EdnList([
        ['a', kwMap({ 'xt/id': 'a', type: 'file' })],
        ['b', kwMap({ 'xt/id': 'b', type: 'file' })],
        ['c', new EdnTagged('xtdb/oid', '00ff')],
        ['d', new Date(1_700_000_000_123)],
      ]),
    );
  });

  test.each([
    ['', 'truncated'],
    ['["~#list",[["a"', 'truncated'],
    ['["^ ","~:a",1]x', 'truncated'],
    ['<html>', 'truncated'],
    ['["~i9007199254740993"]', 'bad-number'],
    ['["~n123456789012345678901234567890"]', 'bad-number'],
    ['["~zNaN"]', 'bad-number'],
    ['[["~#cmap",[[1],2]]]', 'bad-number'],
    ['["~:a b"]', 'bad-name'],
  ])('refuses %j', (text, code) => {
    expect(codeOf(() => decodeTransit(text))).toBe(code);
  });

  test.each([
    ['["^ ","~:a","~i9007199254740993","~:b",1]', ['a', UNREADABLE, 'b', 1]],
    ['["^ ","~:a","~zNaN","~:b",["~n123456789012345678901234567890"]]', ['a', UNREADABLE, 'b', [UNREADABLE]]],
    ['["^ ","~:a b",1,"~:c","~u531a379e-31bb-4ce1-8690-158dceb64be6"]', [UNREADABLE, 1, 'c', UNREADABLE]],
    ['["^ ","~:a",["~#cmap",[[1],2]],"~:b",["~#a b",1]]', ['a', UNREADABLE, 'b', UNREADABLE]],
  ])('replaces the values of other programs in %j, and reads the others', (text, expected) => {
    const flat = expected.map((one, i) => (i % 2 === 0 && typeof one === 'string' ? kw(one) : one));
    expect(decodeForeignTransit(text)).toEqual(new EdnMap(flat as EdnValue[]));
  });

  test('replaces a value that nests too deeply, and refuses an incomplete text of other programs', () => {
    const deep = `[${'['.repeat(600)}${']'.repeat(600)},"~:after"]`;
    expect(codeOf(() => decodeTransit(deep))).toBe('too-deep');
    const [nested, after] = decodeForeignTransit(deep) as readonly EdnValue[];
    let inner: EdnValue | undefined = nested;
    while (Array.isArray(inner)) inner = inner[0];
    expect([inner, after]).toEqual([UNREADABLE, kw('after')]);
    expect(codeOf(() => decodeForeignTransit('["~#list",[["a"'))).toBe('truncated');
  });

  test('is unaffected by an earlier failed read', () => {
    expect(codeOf(() => decodeTransit('[["^ ","~:first","a"],"~zNaN"]'))).toBe('bad-number');
    expect(decodeTransit('[["^ ","~:other","b"],["^ ","^0","c"]]')).toEqual([
      kwMap({ other: 'b' }),
      kwMap({ other: 'c' }),
    ]);
  });
});

describe('writing and reading transit', () => {
  test.each([
    '',
    '~',
    '~:a',
    '~#tag',
    '^',
    '^ ',
    '^0',
    '`',
    '~~',
    '~m5',
    ':x',
    '"',
    '\u0000\u001b\u007f',
    '\u2028',
    '\ufeff',
    '😀',
    'x} [:xtdb.api/evict',
  ])('agree for the string %j as value, element and key, written twice', (text) => {
    const value = [
      text,
      [text, text],
      new EdnMap([text, text]),
      new EdnMap([text, 1]),
      kw('long-name'),
      kw('long-name'),
    ];
    expect(roundTrip(value)).toEqual(value);
  });

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'])(
    'agree for the key %j and leave the prototype of objects alone',
    (key) => {
      const before = Object.getOwnPropertyNames(Object.prototype);
      const value = [new EdnMap([key, 1]), new EdnMap([key, new EdnMap([key, 'x'])])];
      expect(roundTrip(value)).toEqual(value);
      expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
      expect(Object.getOwnPropertyNames(Object)).not.toContain('0');
    },
  );

  const { value } = fc.letrec<{ value: EdnValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constant(null),
      fc.boolean(),
      fc.maxSafeInteger().map((n) => n + 0),
      fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Number.isInteger(n)),
      anyText(),
      fc.stringMatching(/^[~^`:"]{1,3}[ a-z0-9#]{0,4}$/),
      fc.date({ noInvalidDate: true }),
      fc.constantFrom(kw('xt/id'), kw('a'), sym('?e'), kw('xtdb.api/put')),
      fc.array(tie('value'), { maxLength: 5 }),
      fc.array(tie('value'), { maxLength: 3 }).map((items) => list(...items)),
      fc.array(tie('value'), { maxLength: 3 }).map((items) => new EdnSet(items)),
      fc
        .uniqueArray(fc.oneof(fc.string(), fc.stringMatching(/^[~^`]{1,2}[ a-z0-9#:]{0,6}$/)), { maxLength: 20 })
        .chain((keys) =>
          fc
            .array(tie('value'), { minLength: keys.length, maxLength: keys.length })
            .map((values) => new EdnMap(keys.flatMap((key, i) => [key, values[i] ?? null]))),
        ),
    ),
  }));
  test('agree for any value', () => {
    fc.assert(
      fc.property(value, (original) => expect(roundTrip(original)).toEqual(original)),
      { numRuns: 500 },
    );
  });

  test('agree for more long keys than the key cache holds', () => {
    const documents = Array.from(
      { length: 3 },
      () => new EdnMap(Array.from({ length: 3000 }, (_, i) => [`attribute-${i}`, i]).flat()),
    );
    expect(roundTrip(documents)).toEqual(documents);
  });
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { EdnError, type EdnErrorCode } from '../../../src/edn/errors.js';
import { print } from '../../../src/edn/print.js';
import {
  EdnDouble,
  EdnMap,
  EdnSymbol,
  EdnTagged,
  type EdnValue,
  Keyword,
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

describe('printing', () => {
  test('writes a query as XTDB reads it', () => {
    const e = sym('?e');
    const query = kwMap({
      find: [e, list(sym('pull'), e, [sym('*')])],
      in: [[e, sym('...')]],
      limit: 10,
      skip: undefined,
    });
    expect(print(query)).toBe('{:find [?e (pull ?e [*])] :in [[?e ...]] :limit 10}');
  });

  test('quotes strings with escapes that Clojure reads', () => {
    expect(print('a"b\\c\u0000\u001b\n😀')).toBe('"a\\"b\\\\c\\u0000\\u001b\\n😀"');
  });

  test('writes minus zero as zero and keeps the exponent of a wide double', () => {
    expect(print([-0, 1.5, new EdnDouble(1e20), new EdnDouble(1e21)])).toBe('[0 1.5 100000000000000000000.0 1e+21]');
  });

  test('writes instants with milliseconds', () => {
    expect(print(new Date(1_700_000_000_123))).toBe('#inst "2023-11-14T22:13:20.123Z"');
  });
});

describe('never turns a value into syntax', () => {
  const forged: readonly unknown[] = [
    { key: 'a} {:x 1' },
    { sym: '(evict)' },
    { tag: 'inst', val: 'x' },
    { map: [] },
    { list: [] },
    { set: [] },
    { char: 'a' },
    { name: 'a' },
    {},
    undefined,
    () => 1,
    10n,
    Symbol('x'),
    new Map([['a', 1]]),
    Buffer.from('x'),
  ];
  test.each(forged)('refuses %p', (value) => {
    expect(codeOf(() => print(value as EdnValue))).toBe('not-a-value');
    expect(codeOf(() => print(kwMap({ a: [value as EdnValue] })))).toBe('not-a-value');
  });

  test.each([
    '',
    ' ',
    'a b',
    'a)',
    'x} [:xtdb.api/evict "y"] {:z',
    ':a',
    'a/b/c',
    'a"',
    'a;b',
    '#a',
    'a\n',
    '1',
    'é',
    'a\u0000',
    'a,b',
    'a'.repeat(201),
  ])('refuses the name %j for keywords and tags', (name) => {
    expect(codeOf(() => new Keyword(name))).toBe('bad-name');
    expect(codeOf(() => new EdnTagged(name, 1))).toBe('bad-name');
    expect(codeOf(() => new EdnSymbol(name))).toBe('bad-name');
  });

  test.each(['nil', 'true', 'false', '+1', '-2', '.5', '-.5'])('refuses the symbol %j', (name) => {
    expect(codeOf(() => new EdnSymbol(name))).toBe('bad-name');
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 53, -(2 ** 53), 1e20])(
    'refuses the number %d',
    (number) => {
      expect(codeOf(() => print([number]))).toBe('bad-number');
    },
  );

  test('refuses lone surrogates and invalid dates at any place', () => {
    expect(codeOf(() => print(['\ud83d']))).toBe('bad-string');
    expect(codeOf(() => print(new EdnMap(['\ude00', 1])))).toBe('bad-string');
    expect(codeOf(() => print(new Date(Number.NaN)))).toBe('not-a-value');
  });

  test('throws an error, not a stack overflow, for endless nesting', () => {
    let value: EdnValue = [];
    for (let i = 0; i < 20_000; i += 1) value = [value];
    expect(codeOf(() => print(value))).toBe('too-deep');
  });

  test('prints or refuses a keyword of any name, always as one keyword', () => {
    fc.assert(
      fc.property(anyText(), (name) => {
        if (codeOf(() => new Keyword(name)) === undefined)
          expect(print([kw(name)])).toMatch(/^\[:[^\s()[\]{}"@^`~\\;,#']+\]$/);
      }),
    );
  });
});

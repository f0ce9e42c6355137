import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { EdnError, type EdnErrorCode } from '../../../src/edn/errors.js';
import { MAX_EDN_CHARS, parse } from '../../../src/edn/parse.js';
import { print } from '../../../src/edn/print.js';
import { EdnList, EdnMap, EdnSet, EdnTagged, type EdnValue, kw, kwMap, list, sym } from '../../../src/edn/values.js';
import { anyText } from '../../support/any-text.js';

const failure = (text: string): EdnErrorCode | 'parsed' => {
  try {
    parse(text);
    return 'parsed';
  } catch (error) {
    if (error instanceof EdnError) return error.code;
    throw error;
  }
};

describe('parsing answers of the database', () => {
  test('keeps the milliseconds of a receipt', () => {
    const value = parse('{:xtdb.api/tx-id 7, :xtdb.api/tx-time #inst "2024-01-02T03:04:05.678-00:00"}');
    expect(value).toEqual(
      new EdnMap([kw('xtdb.api/tx-id'), 7, kw('xtdb.api/tx-time'), new Date('2024-01-02T03:04:05.678Z')]),
    );
  });

  test('distinguishes keywords, symbols, lists, sets, tags and nested maps', () => {
    expect(parse(' (a :a "a" #{1 2} [nil true false] {"k" {:n -1.5E3}} #xtdb/id "ab")\n')).toEqual(
      new EdnList([
        sym('a'),
        kw('a'),
        'a',
        new EdnSet([1, 2]),
        [null, true, false],
        new EdnMap(['k', kwMap({ n: -1500 })]),
        new EdnTagged('xtdb/id', 'ab'),
      ]),
    );
  });

  test('reads a string of one million characters whole', () => {
    const text = `${'x"\\\n'.repeat(250_000)}`;
    expect(parse(print(text))).toBe(text);
  });
});

describe('parsing anything but a single complete form', () => {
  const cases: readonly (readonly [string, EdnErrorCode])[] = [
    ['', 'truncated'],
    ['   ', 'truncated'],
    ['[1 2', 'truncated'],
    ['{:a 1', 'truncated'],
    ['"abc', 'truncated'],
    ['"abc\\', 'truncated'],
    ['"abc\\u00', 'truncated'],
    ['{:a [1 {:b "tr', 'truncated'],
    ['#inst', 'truncated'],
    ['[#inst]', 'truncated'],
    ['{:a}', 'truncated'],
    ['[1 2)', 'mismatched'],
    ['[1 2}', 'mismatched'],
    ['{:a 1]', 'mismatched'],
    [')', 'mismatched'],
    ['#{1]', 'mismatched'],
    ['{:a 1}garbage', 'trailing'],
    ['1 2', 'trailing'],
    ['{} {}', 'trailing'],
    ['"a" #inst "2024-01-01"', 'trailing'],
    ['9007199254740993', 'bad-number'],
    ['-9007199254740992', 'bad-number'],
    ['1e999', 'bad-number'],
    ['5N', 'bad-number'],
    ['1.5M', 'bad-number'],
    ['1/2', 'bad-number'],
    ['01', 'bad-number'],
    ['1abc', 'bad-number'],
    ['1.2.3', 'bad-number'],
    ['##NaN', 'unsupported'],
    ['[##-Inf 1]', 'unsupported'],
    ['[1;c\n2]', 'bad-number'],
    ['[a ; c\n]', 'unsupported'],
    ['[1 #_2 3]', 'unsupported'],
    ['[\\( 1]', 'unsupported'],
    ['\\a', 'unsupported'],
    ['#:xt{:id 1}', 'unsupported'],
    ['^{:a 1} [1]', 'unsupported'],
    ['#toString 1', 'unsupported'],
    ['#constructor 1', 'unsupported'],
    ['\ufeff{}', 'unsupported'],
    ['<!DOCTYPE html><p>gone</p>', 'trailing'],
    ['{:a 1 :a 2}', 'duplicate-key'],
    ['{"a" 1 "a" 2}', 'duplicate-key'],
    ['"\\q"', 'bad-string'],
    ['"\\101"', 'bad-string'],
    ['"\\ud83d"', 'bad-string'],
    ['#inst "nonsense"', 'not-a-value'],
    [`:${'a'.repeat(5000)}`, 'too-large'],
    ['['.repeat(5000), 'too-deep'],
  ];
  test.each(cases)('refuses %j', (text, code) => {
    expect(failure(text)).toBe(code);
  });

  test('treats a keyword and a string of the same letters as two keys', () => {
    expect(failure('{:x 1 "x" 2}')).toBe('parsed');
  });

  test('refuses a text over the limit without reading it', () => {
    expect(failure('['.repeat(MAX_EDN_CHARS + 1))).toBe('too-large');
  });

  test('refuses every proper prefix of an answer', () => {
    const text = '{:a [1 #{:b} (c "d\\"e")], "k" #inst "2024-01-02T03:04:05.678-00:00"}';
    for (let length = 0; length < text.length; length += 1) expect(failure(text.slice(0, length))).not.toBe('parsed');
    expect(failure(text)).toBe('parsed');
  });
});

describe('printing and parsing', () => {
  const name = fc
    .stringMatching(/^[a-z?*_][a-z0-9._*?-]{0,10}$/)
    .filter((text) => !['nil', 'true', 'false'].includes(text));
  const { value } = fc.letrec<{ value: EdnValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constant(null),
      fc.boolean(),
      fc.maxSafeInteger().map((n) => n + 0),
      fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Number.isInteger(n)),
      fc.string({ unit: 'grapheme' }),
      anyText(),
      fc.date({ noInvalidDate: true, min: new Date(0), max: new Date('9999-12-31') }),
      name.map(kw),
      name.map(sym),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.array(tie('value'), { maxLength: 4 }).map((items) => list(...items)),
      fc
        .uniqueArray(fc.string(), { maxLength: 4 })
        .chain((keys) =>
          fc
            .array(tie('value'), { minLength: keys.length, maxLength: keys.length })
            .map((values) => new EdnMap(keys.flatMap((key, i) => [key, values[i] ?? null]))),
        ),
    ),
  }));
  test('agree for any value', () => {
    fc.assert(
      fc.property(value, (original) => expect(parse(print(original))).toEqual(original)),
      { numRuns: 500 },
    );
  });
});

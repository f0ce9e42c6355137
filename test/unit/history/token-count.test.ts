import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { hashText } from '../../../src/objects/hashes.js';
import { countTokens } from '../../../src/review/ask/token-count.js';
import { cpuMsOf } from '../../support/cpu-time.js';

/** Pieces of real texts, and pieces that are hard for a vocabulary. */
const PIECES = [
  'const ',
  'return',
  '\n\t',
  '\n',
  ');\n',
  '    ',
  '0123',
  '{}();',
  "don't",
  'WORDwordWord',
  'é',
  'e\u0301',
  'ß',
  '漢字',
  'かな',
  'עב',
  '👩‍👩‍👧',
  '\u0000',
  '\r\n',
  '/',
  '…',
  '\u00a0',
  '\ufeff',
];

describe('token counts', () => {
  test.each(['', 'hello world', 'const x = 1;\n\treturn x;', '日本語のテキスト', '👩‍👩‍👧‍👦 family', 'a  b\r\n\r\n c'])(
    'equal those of the vocabulary for %j',
    (text) => {
      expect(countTokens(text)).toBe(encode(text).length);
    },
  );

  test('are exact for a long ordinary text, and the same twice', () => {
    const text = Array.from(
      { length: 400 },
      (_, i) => `export function f${i}(a: number): string { return String(a + ${i}); }`,
    ).join('\n');
    const exact = encode(text).length;
    expect(countTokens(text)).toBe(exact);
    expect(countTokens(text)).toBe(exact);
  });

  test('equal those of the vocabulary for any text', () => {
    const texts = fc.array(
      fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: 'binary', maxLength: 12 }), fc.string({ maxLength: 12 })),
    );
    fc.assert(
      fc.property(
        texts.map((pieces) => pieces.join('')),
        (text) => {
          expect(countTokens(text)).toBe(encode(text, { disallowedSpecial: new Set() }).length);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test('equal those of the vocabulary for ids and numbers beside any character', () => {
    const hex = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 1, maxLength: 70 });
    const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 9 });
    const signs = [
      ' ',
      '  ',
      '\t',
      '\n',
      '\n\n',
      '²',
      '٣',
      'Ⅷ',
      '½',
      'é',
      'e\u0301',
      '/',
      '=',
      '-',
      "'s",
      '\u007f',
      '\u00a0',
    ];
    const texts = fc.array(fc.oneof(hex, digits, fc.constantFrom(...signs), fc.string({ maxLength: 2 })));
    fc.assert(
      fc.property(
        texts.map((pieces) => pieces.join('')),
        (text) => {
          expect(countTokens(text)).toBe(encode(text.toWellFormed(), { disallowedSpecial: new Set() }).length);
        },
      ),
      { numRuns: 1_000 },
    );
    for (const digit of Array.from({ length: 1_000 }, (_, i) => String(i)))
      for (const number of [digit, digit.padStart(2, '0'), digit.padStart(3, '0')])
        expect(encode(number)).toHaveLength(1);
  });

  test('treat the hash of a counted text as a separate text', () => {
    const text = 'what a command says\n'.repeat(40);
    expect(countTokens(text)).toBe(encode(text).length);
    expect(countTokens(hashText(text))).toBe(encode(hashText(text)).length);
  });

  test('equal those of the vocabulary for a text that shares its beginning or end with a counted one', () => {
    const line = fc.constantFrom(
      'id=4f2a type=file path=/src/one.ts',
      '  indented: the line before goes on',
      '/a slash behind a line end',
      '',
      'user: what does this do?',
      '漢字 and 👩‍👩‍👧',
      '\ttab',
      `${'a long line of a file '.repeat(20)}`,
    );
    const begun = Array.from({ length: 400 }, (_, i) => `line ${i} of what a context has in common with the next`);
    const edit = fc.record({
      at: fc.nat(20_000),
      gone: fc.nat(3_000),
      lines: fc.array(line, { maxLength: 8 }),
      cut: fc.constantFrom(0, 0, 1, 5_000),
    });
    fc.assert(
      fc.property(fc.array(line, { maxLength: 40 }), fc.array(edit, { minLength: 1, maxLength: 6 }), (lines, edits) => {
        let text = [...begun, ...lines].join('\n');
        expect(countTokens(text)).toBe(encode(text).length);
        for (const { at, gone, lines: more, cut } of edits) {
          text = `${text.slice(0, at)}${more.join('\n')}${text.slice(at + gone, text.length - cut)}`;
          expect(countTokens(text)).toBe(encode(text.toWellFormed()).length);
        }
      }),
      { numRuns: 150 },
    );
  });

  test('treat names of special tokens as text', () => {
    expect(countTokens('<|endoftext|>')).toBeGreaterThan(1);
  });

  test('count a lone surrogate like the replacement character', () => {
    expect(countTokens('a\ud83d')).toBe(countTokens('a\ufffd'));
  });

  test.each([
    ['one letter', 'a'],
    ['spaces', ' '],
    ['tabs and spaces', '\t '],
    ['one sign', '='],
    ['characters without spaces', '漢字文字'],
    ['pairs', '😀'],
  ])('take time in proportion to the length of a long run of %s', (_, piece) => {
    let tokens = 0;
    const took = cpuMsOf(() => {
      tokens = countTokens(piece.repeat(200_000 / piece.length));
    });
    // Quadratic time would be 14 s (letters) up to minutes.
    expect(took).toBeLessThan(8_000);
    expect(tokens).toBeGreaterThan(100);
  });

  test('change by at most one in a hundred if a long run is cut', () => {
    const text = 'deadbeef0123'.repeat(300);
    const exact = encode(text).length;
    expect(Math.abs(countTokens(text) - exact)).toBeLessThanOrEqual(Math.ceil(exact / 100));
  });
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { applyEdits } from '../../../src/tools/apply-edits.js';
import { cpuMsOf } from '../../support/cpu-time.js';

describe('edits of a text', () => {
  test('match each edit against the original and apply all', () => {
    const { text, changed } = applyEdits(
      'a\nb\nc\n',
      [
        { oldText: 'c', newText: 'a' },
        { oldText: 'a', newText: 'x\ny' },
      ],
      'f',
    );
    expect(text).toBe('x\ny\nb\na\n');
    expect(changed).toEqual([
      { firstLine: 1, lastLine: 2 },
      { firstLine: 4, lastLine: 4 },
    ]);
  });

  test('keep Windows line endings and a byte order mark', () => {
    expect(applyEdits('\ufeffone\r\ntwo\r\nthree\r\n', [{ oldText: 'one\ntwo', newText: '1\n2\n2b' }], 'f').text).toBe(
      '\ufeff1\r\n2\r\n2b\r\nthree\r\n',
    );
    expect(applyEdits('one\r\ntwo\r\n', [{ oldText: 'two', newText: 'two\nand more' }], 'f').text).toBe(
      'one\r\ntwo\r\nand more\r\n',
    );
    expect(applyEdits('one\r\ntwo\r\n', [{ oldText: 'one\r\ntwo', newText: 'x\r\ny' }], 'f').text).toBe('x\r\ny\r\n');
  });

  test.each([
    [
      'new lines take the end of the line that they stand in',
      'one\r\ntwo\nthree\n',
      'three',
      'a\nb',
      'one\r\ntwo\na\nb\n',
    ],
    [
      'new lines in a Windows line of a mixed text are Windows lines',
      'one\r\ntwo\nthree\n',
      'one',
      'a\nb',
      'a\r\nb\r\ntwo\nthree\n',
    ],
    [
      'a last line without an end takes that of the line before',
      'one\ntwo\r\nthree',
      'three',
      'a\nb',
      'one\ntwo\r\na\r\nb',
    ],
    [
      'a text of several lines is found across both kinds',
      'x\r\none\r\ntwo\nthree\r\ny\n',
      'one\ntwo\nthree',
      '1\ntwo\n3',
      'x\r\n1\r\ntwo\n3\r\ny\n',
    ],
    [
      'lines that stay keep their ends when one is put between',
      'a\r\nb\nc\r\n',
      'a\nb\nc\n',
      'a\nnew\nb\nc\n',
      'a\r\nnew\r\nb\nc\r\n',
    ],
    [
      'lines that stay keep their ends when one is taken out',
      'a\r\nb\nc\r\nd\n',
      'a\nb\nc\nd',
      'a\nc\nd',
      'a\r\nc\r\nd\n',
    ],
    ['a text that begins with a line end takes the whole of it', 'a\r\nb\nc', '\nb\nc', '!', 'a!'],
    ['a text with Windows ends is found in one without', 'a\nb\nc\n', 'a\r\nb', 'x\ny', 'x\ny\nc\n'],
    ['the lines around are not touched', '1\r\n2\n3\n4\r\n', '2\n3\n', '', '1\r\n4\r\n'],
  ])('handle mixed line endings: %s', (_name, text, oldText, newText, expected) => {
    expect(applyEdits(text, [{ oldText, newText }], 'f').text).toBe(expected);
  });

  test('count matches across both kinds of line end', () => {
    expect(() => applyEdits('a\r\nb\nc\na\nb\r\nc\n', [{ oldText: 'a\nb\nc', newText: 'x' }], 'f')).toThrow(
      /occurs 2 times in f \(lines 1, 4\)/,
    );
  });

  test('find what an agent sees and keep every other byte, for any line endings', () => {
    const line = fc.constantFrom('a', 'b', '', 'ab');
    const lineEnd = fc.constantFrom('\n', '\r\n');
    const lines = fc
      .array(fc.tuple(line, lineEnd), { minLength: 1, maxLength: 6 })
      .map((all) => all.map((one) => one.join('')).join(''));
    fc.assert(
      fc.property(lines, lines, lines, (before, old, after) => {
        const seen = `<${old}>`.replaceAll('\r\n', '\n');
        const { text } = applyEdits(`${before}<${old}>${after}`, [{ oldText: seen, newText: `${seen}\nnew` }], 'f');
        expect(text.startsWith(`${before}<${old}>`)).toBe(true);
        expect(text.endsWith(`new${after}`)).toBe(true);
        expect(text.length - before.length - old.length - after.length - 2 - 3).toBeLessThanOrEqual(2);
      }),
    );
  });

  test.each([
    [
      'no match',
      'alpha\n',
      [{ oldText: 'beta', newText: 'x' }],
      /oldText: the text was not found in f\. Nothing was changed\./,
    ],
    [
      'a match but for white space',
      '  if (a) {\n',
      [{ oldText: 'if  (a)  {', newText: 'x' }],
      /line 1 differs only in white space/,
    ],
    ['several matches', 'a\nb\na\n', [{ oldText: 'a', newText: 'x' }], /occurs 2 times in f \(lines 1, 3\)/],
    ['matches that overlap each other', 'aaa', [{ oldText: 'aa', newText: 'x' }], /occurs 2 times/],
    ['an empty oldText', 'a', [{ oldText: '', newText: 'x' }], /oldText is empty/],
    [
      'edits that overlap',
      'abc',
      [
        { oldText: 'ab', newText: 'x' },
        { oldText: 'bc', newText: 'y' },
      ],
      /edits\[0\] and edits\[1\] overlap/,
    ],
    [
      'a second edit that only matches the first one',
      'abc',
      [
        { oldText: 'abc', newText: 'new' },
        { oldText: 'new', newText: 'y' },
      ],
      /edits\[1\]\.oldText: the text was not found/,
    ],
    ['no change', 'abc', [{ oldText: 'b', newText: 'b' }], /would not change f/],
  ] as const)('are refused with a reason for %s', (_name, text, edits, message) => {
    expect(() => applyEdits(text, edits, 'f')).toThrow(message);
  });

  test('treat replacement patterns as plain text', () => {
    expect(applyEdits('price', [{ oldText: 'price', newText: '$& $1 $$' }], 'f').text).toBe('$& $1 $$');
  });
});

describe('adversarial texts', () => {
  const letters = 'a'.repeat(1_000_000);
  const refused = (text: string, oldText: string): unknown => {
    try {
      return applyEdits(text, [{ oldText, newText: 'x' }], 'f');
    } catch (error) {
      return error instanceof Error ? error.message : error;
    }
  };

  test.each([
    ['many places that overlap', 'a'.repeat(100_000), /occurs 900001 times in f \(lines 1, 1, 1, 1, 1, \.\.\.\)/],
    ['almost a match at each place, the end differs', `${'a'.repeat(100_000)}b`, /not found/],
    ['almost a match at each place, the beginning differs', `b${'a'.repeat(100_000)}`, /not found/],
    ['almost a match at each place, the middle differs', `${'a'.repeat(50_000)}b${'a'.repeat(50_000)}`, /not found/],
  ])('take linear time: %s', (_name, oldText, message) => {
    // Comparing at each place takes a hundred thousand times a million steps, over a minute.
    expect(cpuMsOf(() => expect(refused(letters, oldText)).toMatch(message))).toBeLessThan(10_000);
  });

  test('have their many matches counted, not stored', () => {
    const before = process.memoryUsage().heapUsed;
    expect(refused('\n'.repeat(8_000_000), '\n')).toMatch(/occurs 8000000 times in f \(lines 1, 2, 3, 4, 5, \.\.\.\)/);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1024 * 1024);
    expect(refused('\n'.repeat(8_000_000), 'some text')).toMatch(/not found/);
  });

  test('are refused with the maximum if there are more edits than their length allows', () => {
    const edits = Array.from({ length: 200 }, (_, index) => ({ oldText: `${index}`, newText: 'x' }));
    const refusal = () => applyEdits('a'.repeat(2_000_000), edits, 'f');
    expect(refusal).toThrow(/200 edits are too many at once for f, which has 2000000 characters/);
    expect(refusal).toThrow(
      expect.objectContaining({ code: 'invalid-arguments', next: 'Give at most 134 edits for this file in one call.' }),
    );
  });
});

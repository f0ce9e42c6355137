import { describe, expect, test } from '@jest/globals';
import { applyEdits } from '../../../src/tools/apply-edits.js';
import { cpuMsOf } from '../../support/cpu-time.js';

describe('edits of a text', () => {
  test('each is matched against the original, all are applied', () => {
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

  test('Windows line ends and a byte order mark stay', () => {
    expect(applyEdits('\ufeffone\r\ntwo\r\nthree\r\n', [{ oldText: 'one\ntwo', newText: '1\n2\n2b' }], 'f').text).toBe(
      '\ufeff1\r\n2\r\n2b\r\nthree\r\n',
    );
    expect(applyEdits('one\r\ntwo\r\n', [{ oldText: 'two', newText: 'two\nand more' }], 'f').text).toBe('one\r\ntwo\r\nand more\r\n');
    expect(applyEdits('one\r\ntwo\r\n', [{ oldText: 'one\r\ntwo', newText: 'x\r\ny' }], 'f').text).toBe('x\r\ny\r\n');
  });

  test('mixed line ends are left as they are', () => {
    expect(applyEdits('one\r\ntwo\nthree\n', [{ oldText: 'three', newText: 'a\nb' }], 'f').text).toBe('one\r\ntwo\na\nb\n');
  });

  test.each([
    ['no match', 'alpha\n', [{ oldText: 'beta', newText: 'x' }], /oldText: the text was not found in f\. Nothing was changed\./],
    ['a match but for white space', '  if (a) {\n', [{ oldText: 'if  (a)  {', newText: 'x' }], /line 1 is like it but for white space/],
    ['several matches', 'a\nb\na\n', [{ oldText: 'a', newText: 'x' }], /stands 2 times in f \(lines 1, 3\)/],
    ['matches that overlap each other', 'aaa', [{ oldText: 'aa', newText: 'x' }], /stands 2 times/],
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
    ['no change', 'abc', [{ oldText: 'b', newText: 'b' }], /leave f as it is/],
  ] as const)('refuses %s and says so', (_name, text, edits, message) => {
    expect(() => applyEdits(text, edits, 'f')).toThrow(message);
  });

  test('what looks like a replacement pattern is plain text', () => {
    expect(applyEdits('price', [{ oldText: 'price', newText: '$& $1 $$' }], 'f').text).toBe('$& $1 $$');
  });
});

describe('texts made to cost time', () => {
  const letters = 'a'.repeat(1_000_000);
  const refused = (text: string, oldText: string): unknown => {
    try {
      return applyEdits(text, [{ oldText, newText: 'x' }], 'f');
    } catch (error) {
      return error instanceof Error ? error.message : error;
    }
  };

  test.each([
    ['many places that overlap', 'a'.repeat(100_000), /stands 900001 times in f \(lines 1, 1, 1, 1, 1, \.\.\.\)/],
    ['almost a match at each place, the end differs', `${'a'.repeat(100_000)}b`, /not found/],
    ['almost a match at each place, the beginning differs', `b${'a'.repeat(100_000)}`, /not found/],
    ['almost a match at each place, the middle differs', `${'a'.repeat(50_000)}b${'a'.repeat(50_000)}`, /not found/],
  ])('%s: linear', (_name, oldText, message) => {
    // Comparing each place anew takes a hundred thousand times a million steps, over a minute.
    expect(cpuMsOf(() => expect(refused(letters, oldText)).toMatch(message))).toBeLessThan(10_000);
  });

  test('places without number are counted, not kept', () => {
    const before = process.memoryUsage().heapUsed;
    expect(refused('\n'.repeat(8_000_000), '\n')).toMatch(/stands 8000000 times in f \(lines 1, 2, 3, 4, 5, \.\.\.\)/);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1024 * 1024);
    expect(refused('\n'.repeat(8_000_000), 'some text')).toMatch(/not found/);
  });

  test('more edits than a text of that length may have are refused, with how many it may', () => {
    const edits = Array.from({ length: 200 }, (_, index) => ({ oldText: `${index}`, newText: 'x' }));
    const refusal = () => applyEdits('a'.repeat(2_000_000), edits, 'f');
    expect(refusal).toThrow(/200 edits are too many at once for f, which has 2000000 characters/);
    expect(refusal).toThrow(
      expect.objectContaining({ code: 'invalid-arguments', next: 'Give at most 134 edits for this file in one call.' }),
    );
  });
});

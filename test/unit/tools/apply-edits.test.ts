import { describe, expect, test } from '@jest/globals';
import { applyEdits } from '../../../src/tools/apply-edits.js';

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

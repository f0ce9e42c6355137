import { describe, expect, test } from '@jest/globals';
import { isWholeRead, readText } from '../../../src/foreign-tools/read-output.js';

describe('whole reads and parts (decision D8)', () => {
  const content = 'one\ntwo\nthree\n';
  test.each([
    ['the text itself', {}, content, true],
    ['with line numbers', {}, '     1\tone\n     2\ttwo\n     3\tthree', true],
    ['between tags', {}, `<file>\n00001| one\n00002| two\n00003| three\n</file>`, true],
    ['a slice', { offset: 2, limit: 1 }, 'two\n', false],
    ['a slice by lines', { start_line: 1, end_line: 2 }, 'one\ntwo\n', false],
    ['a view range', { view_range: [1, 2] }, '1\tone\n2\ttwo', false],
    ['a limit that did not bite', { limit: 2000 }, content, true],
    ['less than the file', {}, 'one\ntwo', false],
    ['a hint that more follows', {}, 'one\ntwo\nthree\n(Showing lines 1-3 of 900. Use offset to continue.)', false],
    ['nothing', {}, '', false],
  ])('%s', (_name, args, output, whole) => expect(isWholeRead({ args, output }, content)).toBe(whole));

  test('does not treat a file that mentions truncation as cut', () => {
    const text = 'the output was truncated\nuse offset to go on\n';
    expect(isWholeRead({ args: {}, output: text }, text)).toBe(true);
    expect(isWholeRead({ args: {}, output: `1\tthe output was truncated\n2\tuse offset to go on` }, text)).toBe(true);
  });

  test('removes line numbers and tool wrappers, and leaves incomplete ones unchanged', () => {
    const lines = (numbers: readonly number[]) => numbers.map((n) => `${n}: line ${n}:`).join('\n');
    const around = (text: string, end: string) =>
      `<path>/p/a.ts</path>\n<type>file</type>\n<content>\n${text}\n\n${end}\n</content>`;
    const read = (output: string) => readText({ args: {}, output, truncated: false });
    const end = '(End of file - total 2 lines)';
    expect(read(around(lines([1, 2]), end))).toEqual({ text: 'line 1:\nline 2:', startLine: 1, whole: true });
    expect(read(around(lines([4, 5]), end))).toMatchObject({ text: 'line 4:\nline 5:', whole: false });
    expect(read(`${around(lines([1]), end)}\n\n<system-reminder>\nmore\n</system-reminder>`)?.text).toBe('line 1:');
    expect(read(around('not numbered', end))?.text).toContain('<content>');
  });

  test('reads an empty file whole', () => expect(isWholeRead({ args: {}, output: '(empty file)' }, '')).toBe(true));
});

import { describe, expect, test } from '@jest/globals';
import { isWholeRead, readText } from '../../../../src/harness/tool-output/read-output.js';
import { frame, headerLine } from '../../../../src/tools/framing.js';

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
  ])('are distinguished by arguments and output: %s', (_name, args, output, whole) =>
    expect(isWholeRead({ args, output }, content)).toBe(whole),
  );

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

  describe('the lines in an answer of our own tool, which an agent called over MCP', () => {
    const answer = (lines: string, chars: number, ...rest: [body: string, note?: string]) =>
      frame(headerLine('file', { id: '40869b60', path: 'a b.ts', lines, chars }), rest[0], rest.slice(1));
    const read = (output: string) => readText({ args: { path: 'a b.ts' }, output, truncated: false });

    test('are the text below the head', () => {
      expect(read(answer('1-3/3', content.length, content))).toMatchObject({ text: content, whole: true, total: 3 });
      expect(read(answer('1-3/3', content.length, content.trimEnd()))).toMatchObject({ text: content, whole: true });
      expect(read(answer('0', 0, '(empty file)'))).toMatchObject({ text: '', whole: true, total: 0 });
    });

    test('have their place in the file if they are a part', () => {
      const note = '[7 more lines. Continue: read path="a b.ts" offset=3]';
      const found = read(answer('1-2/9', 90, 'one\ntwo\n', note));
      expect(found).toEqual({ text: 'one\ntwo', startLine: 1, whole: false, total: 9 });
      expect(read(answer('8-9/9', 90, 'one\ntwo\n'))).toMatchObject({ text: 'one\ntwo', startLine: 8, whole: false });
    });

    test('are unknown if a line is cut, or the text differs from the length in the head', () => {
      const cut = '[line 1 goes on. Continue: read path="a b.ts" offset=1 column=4]';
      expect(read(answer('1-1/1', 90, 'one', cut))).toBeUndefined();
      expect(read(answer('1-1/1', 90, 'one'))).toMatchObject({ whole: false });
    });
  });

  test('reads an empty file whole', () => expect(isWholeRead({ args: {}, output: '(empty file)' }, '')).toBe(true));
});

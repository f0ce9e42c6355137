import { describe, expect, test } from '@jest/globals';
import { showsText } from '../../../src/assembly/shown-text.js';

const TEXT = "def f():\n    return 1\n\n# it's the end\n";
const numbered = (form: (line: string, number: number) => string): string =>
  TEXT.trimEnd()
    .split('\n')
    .map((line, i) => form(line, i + 1))
    .join('\n');

describe('an output shows a text', () => {
  test.each([
    ['as it is', TEXT],
    ['with something around it', `<file>\n${TEXT}</file>`],
    ['numbered with an arrow', numbered((line, n) => `${String(n).padStart(6)}→${line}`)],
    ['numbered with a tab', numbered((line, n) => `${String(n).padStart(6)}\t${line}`)],
    ['numbered with a colon', numbered((line, n) => `${n}:${line}`)],
    ['numbered with a colon and a space', numbered((line, n) => `${n}: ${line}`)],
    ['numbered with a bar and a space', numbered((line, n) => `${String(n).padStart(5, '0')}| ${line}`)],
  ])('in this form: %s', (_form, output) => {
    expect(showsText(output, TEXT)).toBe(true);
  });

  test('is not shown if a line is missing, changed or indented differently', () => {
    for (const output of [
      numbered((line, n) => `${n}→${line}`).replace('2→    return 1\n', ''),
      numbered((line, n) => `${n}→${line}`).replace('return 1', 'return 2'),
      numbered((line, n) => `${n}→${line.trimStart()}`),
      '',
    ])
      expect(showsText(output, TEXT)).toBe(false);
  });
});

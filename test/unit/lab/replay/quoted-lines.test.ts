import { describe, expect, test } from '@jest/globals';
import { QuotedLines } from '../../../../src/lab/replay/use-evidence.js';
import { canonicalPath } from '../../../../src/objects/ids.js';

const A = canonicalPath('/p/a.ts');
const LINE = 'export const somethingThatNobodySaysByChance = 42;';

describe('quoted lines', () => {
  test('name the file that was last seen with them, ignoring indentation', () => {
    const lines = new QuotedLines();
    lines.learn(A, `one\n    ${LINE}\n`);
    expect(lines.quotedIn(`As you can see:\n${LINE}\nis there.`)).toEqual([A]);
    lines.learn(canonicalPath('/p/b.ts'), LINE);
    expect(lines.quotedIn(LINE)).toEqual(['/p/b.ts']);
  });

  test('name nothing if they are short or unknown', () => {
    const lines = new QuotedLines();
    lines.learn(A, `return true;\n${LINE}`);
    expect(lines.quotedIn('return true;')).toEqual([]);
    expect(lines.quotedIn(LINE.replace('42', '43'))).toEqual([]);
  });

  test('are forgotten when there are too many', () => {
    const lines = new QuotedLines(2);
    lines.learn(A, LINE);
    lines.learn(A, `${LINE} 1\n${LINE} 2`);
    expect(lines.quotedIn(LINE)).toEqual([]);
  });
});

import { describe, expect, test } from '@jest/globals';
import { applyPatch } from 'diff';
import fc from 'fast-check';
import { diffTexts, unifiedLines } from '../../../src/review/ask/text-diff.js';
import { cpuMsOf } from '../../support/cpu-time.js';

describe('differences of texts', () => {
  test('are empty for equal texts', () => {
    expect(diffTexts('a\nb\n', 'a\nb\n')).toEqual({ equal: true, added: 0, removed: 0, hunks: [] });
  });

  test('show the lines around, and a missing end of the last line', () => {
    const diff = diffTexts('1\n2\n3\n4\n5\n6\n7\n8\n', '1\n2\n3\n4\nfive\n6\n7\n8', 1);
    expect(diff).toMatchObject({ equal: false, added: 2, removed: 2 });
    expect(unifiedLines(diff)).toEqual([
      '@@ -4,5 +4,5 @@',
      ' 4',
      '-5',
      '+five',
      ' 6',
      ' 7',
      '-8',
      '+8',
      '\\ No newline at end of file',
    ]);
  });

  test('turn one text into the other', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd', ''), { maxLength: 30 }).map((lines) => lines.join('\n'));
    fc.assert(
      fc.property(text, text, (before, after) => {
        const lines = unifiedLines(diffTexts(before, after));
        const patch = ['--- a', '+++ b', ...lines, ''].join('\n');
        expect(lines.length === 0 ? before : applyPatch(before, patch)).toBe(after);
      }),
    );
  });

  test('show only the sizes of very different texts, in bounded time', () => {
    const noise = (seed: number): string =>
      Array.from({ length: 60_000 }, (_, i) => String((i * 2_654_435_761 + seed * 40_503) % 1_000_003)).join('\n');
    const [one, other] = [noise(1), noise(7)];
    expect(cpuMsOf(() => diffTexts(one, other))).toBeLessThan(20_000);
    const diff = diffTexts(one, other);
    expect(diff.hunks).toBeUndefined();
    expect(unifiedLines(diff)).toEqual(['@@ too different to be compared line by line: 60000 lines became 60000 @@']);
  });
});

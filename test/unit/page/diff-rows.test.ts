import { describe, expect, test } from '@jest/globals';
import { diffLines, diffWordsWithSpace } from 'diff';
import { diffRows, foldedRows, hunkRows } from '../../../src/page/diff-rows.js';

const rowsOf = (before: string, after: string) => diffRows(diffLines(before, after), diffWordsWithSpace);
const numbers = (n: number): string => Array.from({ length: n }, (_, i) => `line ${i}\n`).join('');

describe('the rows of a difference', () => {
  test('mark the words that changed, and number the lines of both texts', () => {
    const rows = rowsOf('a\nconst one = 1;\nb\n', 'a\nconst two = 1;\nb\n');
    expect(rows.map(({ sign, old, new: fresh }) => [sign, old, fresh])).toEqual([
      [' ', 1, 1],
      ['-', 2, undefined],
      ['+', undefined, 2],
      [' ', 3, 3],
    ]);
    expect(rows[1]?.marks).toEqual([{ from: 6, to: 9 }]);
    expect(rows[2]?.marks).toEqual([{ from: 6, to: 9 }]);
  });

  test('mark no words of lines that have little in common', () => {
    const [removed, added] = rowsOf('alpha beta gamma\n', 'x = y(z)\n');
    expect([removed?.marks, added?.marks]).toEqual([[], []]);
  });

  test('fold equal lines far from a difference, until they are opened', () => {
    const rows = rowsOf(`${numbers(20)}old\n${numbers(20)}`, `${numbers(20)}new\n${numbers(20)}`);
    const folded = foldedRows(rows, new Set());
    expect(folded.map((row) => ('fold' in row ? row.count : row.sign)).join('')).toBe('17   -+   17');
    expect(foldedRows(rows, new Set([0, 22]))).toHaveLength(rows.length);
  });

  test('of a recorded hunk keep its line numbers', () => {
    const hunks = [{ old_start: 7, new_start: 9, lines: [' a', '-b', '+c', '\\ No newline at end of file'] }];
    expect(hunkRows(hunks).map(({ sign, old, new: fresh }) => [sign, old, fresh])).toEqual([
      [' ', 7, 9],
      ['-', 8, undefined],
      ['+', undefined, 10],
    ]);
  });

  test('have no numbers if the place of a replaced text is not known, and dots between two hunks', () => {
    const hunk = { old_start: 0, new_start: 0, lines: ['-a', '+b'] };
    expect(hunkRows([hunk, hunk])).toEqual([
      { sign: '-', text: 'a' },
      { sign: '+', text: 'b' },
      { sign: ' ', text: '⋯' },
      { sign: '-', text: 'a' },
      { sign: '+', text: 'b' },
    ]);
  });
});

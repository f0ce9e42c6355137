import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { cellsOf, fittedTable, shortened, wrapped } from '../../../src/cli/fitted-table.js';
import { coloursFor } from '../../../src/cli/output.js';
import { anyText } from '../../support/any-text.js';

const colours = coloursFor({ isTerminal: false, env: {} });
const columns = [
  { heading: 'n', align: 'right' },
  { heading: 'title', share: 3, least: 8 },
  { heading: 'folder', share: 1, least: 6 },
  { heading: 'calls', align: 'right' },
] as const;

describe('a table for people', () => {
  test('keeps every line within the terminal for any texts', () => {
    const row = fc.tuple(fc.constantFrom('1', '22'), anyText(), anyText(), fc.constantFrom('7', '1,234'));
    fc.assert(
      fc.property(fc.array(row, { maxLength: 6 }), fc.integer({ min: 1, max: 200 }), (rows, width) => {
        const lines = fittedTable(columns, rows, { colours, width });
        expect(lines.length).toBe(rows.length + 1);
        for (const line of lines) {
          expect(cellsOf(line)).toBeLessThanOrEqual(width);
          expect(line).not.toContain('\n');
        }
      }),
    );
  });

  test('marks cut cells and leaves room that one column does not need to the other', () => {
    const rows = [['1', 'Sort the shelf by title and by author', '~/a', '12']];
    expect(fittedTable(columns, rows, { colours, width: 40 })).toEqual([
      'n  title                   folder  calls',
      '1  Sort the shelf by tit…  ~/a        12',
    ]);
    expect(fittedTable(columns, rows, { colours, width: undefined })[1]).toBe(
      '1  Sort the shelf by title and by author  ~/a        12',
    );
  });

  test('takes the minimum of a column from the others, so that no line is cut', () => {
    const rows = [['1', 'Sort the shelf by title', '~/work/shelf', '12']];
    expect(fittedTable(columns, rows, { colours, width: 28 })).toEqual([
      'n  title       folder  calls',
      '1  Sort the …  ~/wor…     12',
    ]);
  });

  test('leaves out columns without any cell', () => {
    expect(fittedTable(columns, [['1', 'x', '', '7']], { colours, width: 80 })).toEqual([
      'n  title  calls',
      '1  x          7',
    ]);
  });

  test('counts wide characters twice and marks above letters not at all', () => {
    expect([cellsOf('棚の本'), cellsOf('e\u0301'), cellsOf('📚')]).toEqual([6, 1, 2]);
    expect([shortened('棚の本です', 6), shortened('abc', 3), shortened('abcd', 3)]).toEqual(['棚の…', 'abc', 'ab…']);
  });
});

describe('a line for a terminal', () => {
  const red = coloursFor({ isTerminal: true, env: {} });

  test('is cut with its styles, which end at the cut', () => {
    expect(shortened('short', 5)).toBe('short');
    expect(shortened('a longer line', 8)).toBe('a longe…');
    const styled = shortened(`${red.cyan('read')} ${red.dim('src/shelf.ts and more')}`, 10);
    expect(styled).toBe(`${red.cyan('read')} \u001b[2msrc/…\u001b[22m`);
  });

  test('is broken at spaces, with the same beginning on each line', () => {
    expect(wrapped('one two three four', 11, '# ')).toEqual(['# one two', '# three', '# four']);
    expect(wrapped('one two', undefined, '# ')).toEqual(['# one two']);
  });
});

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { sourceFiles } from './source-tree.js';

/** The subsections of the SSOT; those of §8 and §9 are the sections themselves. */
const SUBSECTIONS = Object.entries({ 1: 4, 2: 6, 3: 7, 4: 3, 5: 9, 6: 3, 7: 4 })
  .flatMap(([section, count]) => Array.from({ length: count }, (_, i) => `${section}.${i + 1}`))
  .concat('8', '9');

const page = readFileSync('docs/ssot.md', 'utf8');
const [sections = '', divergences = '', readings = ''] = page.split(/\n## (?:Divergences|Readings)\n/);
const rowsOf = (text: string): readonly (readonly string[])[] =>
  text
    .split('\n')
    .filter((line) => /^\| (?!§|decision)/.test(line))
    .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));

/**
 * A table of rows that code cites as `divergence KEY` or `reading KEY`. A key is a ruling (D8, G)
 * or a page (0013).
 */
interface Table {
  readonly kind: string;
  readonly rows: readonly (readonly string[])[];
  /** Cells of a row, with the empty ones before the first and behind the last bar. */
  readonly cells: number;
  /** Rulings in force that need a row. */
  readonly rulings: readonly string[];
  readonly cited: RegExp;
}

const TABLES: readonly Table[] = [
  {
    kind: 'divergence',
    rows: rowsOf(divergences),
    cells: 7,
    rulings: ['C1', 'C3', 'C6', 'C7', 'D8', 'E3', 'E4', 'F5', 'G'],
    cited: /\bdivergence ([A-I]\d{0,2}|\d{4})\b/g,
  },
  {
    kind: 'reading',
    rows: rowsOf(readings),
    cells: 6,
    rulings: ['C9', 'D5', 'F1'],
    cited: /\breading ([A-I]\d{0,2}|\d{4})\b/g,
  },
];
const keysOf = ({ rows }: Table): readonly string[] => rows.map(([, key = '']) => key);
function citations(text: string, { cited }: Table): readonly string[] {
  return [...text.matchAll(cited)].map(([, key = '']) => key);
}

const pages = readdirSync('docs/decisions').map((name) => ({
  path: `docs/decisions/${name}`,
  text: readFileSync(`docs/decisions/${name}`, 'utf8'),
}));
const texts = [...sourceFiles('src'), ...pages];

describe('docs/ssot.md', () => {
  test('has one complete row for every subsection of the SSOT, in its order', () => {
    expect(rowsOf(sections).map(([, section]) => section)).toEqual(SUBSECTIONS);
    expect(rowsOf(sections).filter((cells) => cells.length !== 7 || cells.slice(1, -1).includes(''))).toEqual([]);
  });

  test('has one heading for divergences and one for readings', () => {
    const headings = page.split('\n').filter((line) => /^#+ .*(?:divergence|reading)/i.test(line));
    expect(headings).toEqual(['## Divergences', '## Readings']);
  });

  test.each(TABLES)('has one complete row for each $kind', (table) => {
    const keys = keysOf(table);
    expect(keys).toEqual([...new Set(keys)]);
    expect(table.rows.filter((row) => row.length !== table.cells || row.slice(1, -1).includes(''))).toEqual([]);
    expect(table.rulings.filter((ruling) => !keys.includes(ruling))).toEqual([]);
  });

  test.each(TABLES)('names each $kind in the state of one of its subsections', ({ kind, rows }) => {
    const stateOf = new Map(rowsOf(sections).map(([, section = '', , , , state = '']) => [section, state]));
    const missing = rows.filter(([, key = '', at = '']) => {
      const named = new RegExp(`\\*\\*${kind}\\*\\*[^*]*\\b${key}\\b`);
      return !at.split(', ').some((section) => named.test(stateOf.get(section) ?? ''));
    });
    expect(missing).toEqual([]);
  });
});

describe.each(TABLES)('a $kind that code or a decision cites', (table) => {
  test('has a row', () => {
    const keys = keysOf(table);
    const unknown = texts.flatMap(({ path, text }) =>
      citations(text, table).flatMap((key) => (keys.includes(key) ? [] : [`${path}: ${key}`])),
    );
    expect(unknown).toEqual([]);
  });

  test('is cited in code for every row', () => {
    const inCode = new Set(sourceFiles('src').flatMap(({ text }) => citations(text, table)));
    expect(keysOf(table).filter((key) => !inCode.has(key))).toEqual([]);
  });
});

test('code and decisions mention no divergence without its key', () => {
  const nameless = texts.flatMap(({ path, text }) => {
    const uncited = TABLES.reduce((left, { cited }) => left.replaceAll(cited, ''), text);
    const rest = uncited.replaceAll(/every divergence that has one/g, '');
    return /\bdivergences?\b/i.test(rest) ? [path] : [];
  });
  expect(nameless).toEqual([]);
});

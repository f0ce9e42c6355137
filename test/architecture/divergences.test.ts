import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { sourceFiles } from './source-tree.js';

/** The subsections of the SSOT; those of §8 and §9 are the sections themselves. */
const SUBSECTIONS = Object.entries({ 1: 4, 2: 6, 3: 7, 4: 3, 5: 9, 6: 3, 7: 4 })
  .flatMap(([section, count]) => Array.from({ length: count }, (_, i) => `${section}.${i + 1}`))
  .concat('8', '9');
/** Rulings on the SSOT that depart from its letter, as far as they are in force here. */
const RULINGS = ['C1', 'C3', 'C6', 'C7', 'D8', 'E3', 'E4', 'F1', 'F5', 'G'];

const page = readFileSync('docs/ssot.md', 'utf8');
const [sections = '', divergences = ''] = page.split('\n## Divergences\n');
const rowsOf = (text: string): readonly (readonly string[])[] =>
  text
    .split('\n')
    .filter((line) => /^\| (?!§|decision)/.test(line))
    .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));
const keys = rowsOf(divergences).map(([, key = '']) => key);

/** A divergence as code and pages name it: a ruling (D8, G) or a page (0013). */
const NAMED = /\bdivergence ([A-I]\d{0,2}|\d{4})\b/g;
const named = (text: string): readonly string[] => [...text.matchAll(NAMED)].map(([, key = '']) => key);

const pages = readdirSync('docs/decisions').map((name) => ({
  path: `docs/decisions/${name}`,
  text: readFileSync(`docs/decisions/${name}`, 'utf8'),
}));
const texts = [...sourceFiles('src'), ...pages];

describe('docs/ssot.md', () => {
  test('has one row for every subsection of the SSOT, in its order', () => {
    expect(rowsOf(sections).map(([, section]) => section)).toEqual(SUBSECTIONS);
    expect(rowsOf(sections).filter((cells) => cells.length !== 7 || cells.slice(1, -1).includes(''))).toEqual([]);
  });

  test('has one table of divergences: each with its sections, what, why, and the letter or its absence', () => {
    expect(page.split('\n').filter((line) => /^#+ .*divergence/i.test(line))).toEqual(['## Divergences']);
    expect(keys).toEqual([...new Set(keys)]);
    expect(rowsOf(divergences).filter((cells) => cells.length !== 7 || cells.slice(1, -1).includes(''))).toEqual([]);
    expect(RULINGS.filter((ruling) => !keys.includes(ruling))).toEqual([]);
  });

  test('each divergence stands in the rows of its subsections', () => {
    const stateOf = new Map(rowsOf(sections).map(([, section = '', , , , state = '']) => [section, state]));
    const missing = rowsOf(divergences).filter(([, key = '', at = '']) =>
      at.split(', ').every((section) => !new RegExp(`\\*\\*divergence\\*\\*.*\\b${key}\\b`).test(stateOf.get(section) ?? '')),
    );
    expect(missing).toEqual([]);
  });
});

describe('a divergence that code or a decision names', () => {
  test('stands in the table', () => {
    const unknown = texts.flatMap(({ path, text }) => named(text).flatMap((key) => (keys.includes(key) ? [] : [`${path}: ${key}`])));
    expect(unknown).toEqual([]);
  });

  test('is named by its key: nothing diverges without one', () => {
    const nameless = texts.flatMap(({ path, text }) => {
      const rest = text.replaceAll(NAMED, '').replaceAll(/every divergence that has one/g, '');
      return /\bdivergences?\b/i.test(rest) ? [path] : [];
    });
    expect(nameless).toEqual([]);
  });

  test('is named in the code: no row outlives what it is about', () => {
    const inCode = new Set(sourceFiles('src').flatMap(({ text }) => named(text)));
    expect(keys.filter((key) => !inCode.has(key))).toEqual([]);
  });
});

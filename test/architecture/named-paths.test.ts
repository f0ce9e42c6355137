import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Returns whether a file or folder of that name exists, with or without its extension. */
function isThere(path: string): boolean {
  const at = join(root, path);
  if (existsSync(at)) return true;
  return ['.ts', '.test.ts', '.mjs', '.json'].some((ending) => existsSync(`${at}${ending}`));
}

/** Returns the texts in backquotes. */
const quoted = (text: string): readonly string[] => [...text.matchAll(/`([^`\n]+)`/g)].map(([, inside = '']) => inside);

interface Named {
  readonly row: string;
  readonly path: string;
}

/**
 * Returns the paths of the table of sections. A name without a folder is in the folder of the
 * previous name.
 */
function namedInTable(): readonly Named[] {
  const rows = read('docs/ssot.md')
    .split('\n')
    .filter((line) => /^\| \d(\.\d)? \|/.test(line));
  return rows.flatMap((row) => {
    const [, section = '', , implemented = '', shown = ''] = row.split('|');
    const below = (cell: string, places: readonly string[]): readonly Named[] => {
      let folder = '';
      return quoted(cell).map((name) => {
        if (name.includes('/')) folder = dirname(name.replace(/\/$/, '/x'));
        const whole = name.includes('/') ? name : `${folder}/${name}`;
        const place = places.find((prefix) => isThere(`${prefix}${whole}`));
        return {
          row: section.trim(),
          path: place === undefined ? `${places.join(' or ')}: ${whole}` : `${place}${whole}`,
        };
      });
    };
    return [...below(implemented, ['src/', '']), ...below(shown, ['test/'])];
  });
}

describe('paths in documents', () => {
  test('exist for every row of the table of sections, with a place that shows it', () => {
    const named = namedInTable();
    expect(named.length).toBeGreaterThan(60);
    expect(named.filter(({ path }) => !isThere(path))).toEqual([]);
  });

  test('exist in the architecture', () => {
    const rooms = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const text = read('docs/architecture.md');
    const named = [...text.matchAll(/(?:^|[\s`(])\/?((?:[a-z-]+\/)+[a-z-]*)(?=[\s`).,;:]|$)/gm)].map(
      ([, path = '']) => path,
    );
    expect(named.length).toBeGreaterThan(20);
    const missing = named.filter(
      (path) => !['src/', 'test/', '', 'docs/'].some((prefix) => isThere(`${prefix}${path}`)),
    );
    expect(missing).toEqual([]);
    expect(rooms.map(({ name }) => name).filter((name) => !text.includes(`${name}/`))).toEqual([]);
  });

  test('exist for every link between documents', () => {
    const documents = [
      'README.md',
      'CONTRIBUTING.md',
      'CHANGELOG.md',
      'xtdb/README.md',
      ...readdirSync(join(root, 'docs'), { recursive: true }).map((name) => `docs/${name}`),
    ].filter((path) => path.endsWith('.md'));
    const links = documents.flatMap((path) =>
      [...read(path).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
        .filter(([, to = '']) => !/^[a-z]+:/.test(to))
        .map(([, to = '']) => ({ path, to })),
    );
    expect(links.length).toBeGreaterThan(30);
    expect(links.filter(({ path, to }) => !existsSync(join(root, dirname(path), to)))).toEqual([]);
  });
});

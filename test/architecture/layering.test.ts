import { posix } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { sidewaysArrow } from './figures.js';
import { floorOf, HOUSE, partOf, roomOf, type SourceFile, sourceFiles } from './source-tree.js';

/** Rooms that may have side effects. */
const EFFECTS: readonly { readonly what: string; readonly pattern: RegExp; readonly rooms: readonly string[] }[] = [
  {
    what: 'process.env or process.argv',
    pattern: /process\.(env|argv)\b/,
    rooms: [
      'agents',
      'cli',
      'maintenance',
      'mcp',
      'http',
      'host',
      'extensions',
      'lab',
      'own-sessions',
      'watch',
      'gateway',
      'erasure',
      'page',
      'program',
      'restore',
      'review',
      'main',
    ],
  },
  { what: 'the console', pattern: /\bconsole\./, rooms: ['cli', 'lab'] },
  {
    what: 'the disk',
    pattern: /from 'node:fs/,
    rooms: [
      'process',
      'journal',
      'node',
      'filesystem',
      'lab',
      'own-sessions',
      'watch',
      'gateway',
      'hooks',
      'tools',
      'contracts',
      'bundle',
      'cli',
      'mcp',
      'http',
      'host',
      'agents',
      'extensions',
      'maintenance',
      'page',
      'program',
      'erasure',
      'restore',
      'review',
      'text-index',
    ],
  },
  {
    what: 'processes',
    pattern: /from 'node:child_process'/,
    rooms: [
      'process',
      'node',
      'filesystem',
      'tools',
      'agents',
      'cli',
      'contracts',
      'extensions',
      'gateway',
      'page',
      'watch',
    ],
  },
];

const files = sourceFiles('src');
/** Every arrow of the drawing, as `sidewaysArrow` writes them. */
const ARROWS: ReadonlySet<string> = new Set([
  ...HOUSE.arrows,
  ...Object.entries(HOUSE.inside).flatMap(([room, arrows]) => arrows.map((arrow) => `${room}: ${arrow}`)),
]);

function forbidden({ path, imports }: SourceFile): readonly string[] {
  return imports
    .filter((to) => {
      const arrow = sidewaysArrow(path, to);
      if (arrow !== undefined) return !ARROWS.has(arrow);
      return floorOf(roomOf(to)) > floorOf(roomOf(path));
    })
    .map((to) => `${path} imports ${to}`);
}

function cycles(): readonly string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) found.push([...trail.slice(trail.indexOf(path)), path].join(' > '));
    if (done.has(path) || trail.includes(path)) return;
    for (const next of byPath.get(path)?.imports ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const { path } of files) visit(path, []);
  return found;
}

describe('floors', () => {
  test('include the whole source', () => {
    expect(files.length).toBeGreaterThan(60);
    expect(files.some(({ imports }) => imports.length > 5)).toBe(true);
  });

  test('use every arrow', () => {
    const used = new Set(files.flatMap(({ path, imports }) => imports.map((to) => sidewaysArrow(path, to))));
    expect([...ARROWS].filter((arrow) => !used.has(arrow))).toEqual([]);
  });

  test('have a place for every room', () => {
    expect([...new Set(files.map(({ path }) => roomOf(path)))].filter((room) => floorOf(room) < 0)).toEqual([]);
  });

  test('let files outside the parts of a divided room exist only with arrows to them', () => {
    const outside = files.filter(
      ({ path }) => partOf(path) === '' && HOUSE.inside[roomOf(path)]?.every((arrow) => !arrow.endsWith('>')),
    );
    expect(outside.map(({ path }) => path)).toEqual([]);
  });

  test('forbid imports from a room above, or beside without an arrow', () => {
    expect(files.flatMap(forbidden)).toEqual([]);
  });

  test('forbid import cycles', () => {
    expect(cycles()).toEqual([]);
  });

  test.each(EFFECTS)('let only the allowed rooms touch $what', ({ pattern, rooms }) => {
    const touching = files.filter(({ path, text }) => pattern.test(text) && !rooms.includes(roomOf(path)));
    expect(touching.map(({ path }) => path)).toEqual([]);
  });

  test('let only one file write to the terminal, so that recorded text is always escaped', () => {
    // The protocols' own streams, and one message before anything is loaded.
    const others = ['src/cli/output.ts', 'src/mcp/stdio.ts', 'src/extensions/sidecar/main.ts', 'src/main.ts'];
    const writing = files.filter(
      ({ path, text }) =>
        !others.includes(path) &&
        /\bconsole\.|\b(?:stdout|stderr)\.(?:write|end)\b|process\.stdout\b|from 'node:tty'/.test(text),
    );
    expect(writing.map(({ path }) => path)).toEqual([]);
    const exact = files.filter(({ path, text }) => path !== 'src/cli/output.ts' && /\bwriteExactly\(/.test(text));
    expect(exact.map(({ path }) => path)).toEqual(['src/cli/review/answer.ts']);
  });

  test('forbid default exports, wildcard exports and disabled checks', () => {
    const bad = files.filter(({ text }) =>
      /^export default|^export \*|biome-ignore|@ts-ignore|@ts-nocheck|eslint-disable/m.test(text),
    );
    expect(bad.map(({ path }) => path)).toEqual([]);
  });

  test('let the page import wire types and leaf modules only, and build no markup, style or code from text', () => {
    const isInBrowser = (path: string): boolean => path.startsWith('src/page/') && !path.startsWith('src/page/server/');
    const page = files.filter(({ path }) => isInBrowser(path));
    expect(page.length).toBeGreaterThan(15);
    const run = page
      .flatMap(({ path, text }) =>
        [...text.matchAll(/(?:^import (?!type )[^;]*?|\bimport\()'(\.[^']+)\.js'/gm)].map(([, name = '']) =>
          posix.join(posix.dirname(path), `${name}.ts`),
        ),
      )
      .filter((path) => !isInBrowser(path));
    expect(run.length).toBeGreaterThan(3);
    const importing = files.filter(({ path, text }) => run.includes(path) && /^import /m.test(text));
    expect(importing.map(({ path }) => path)).toEqual([]);
    expect(run.filter((path) => !files.some((file) => file.path === path))).toEqual([]);
    const packages = new Set(
      page.flatMap(({ text }) =>
        [...text.matchAll(/(?:^import [^;]*?from |\bimport\()'([^'.][^']*)'/gm)].map(([, name = '']) => name),
      ),
    );
    const known = [
      'preact',
      'preact/hooks',
      '@preact/signals',
      'diff',
      'uplot',
      '@noble/hashes/sha2.js',
      '@noble/hashes/utils.js',
      'marked',
    ];
    expect([...packages].filter((name) => !known.includes(name))).toEqual([]);
    const making = page.filter(({ text }) =>
      /innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|srcdoc|setAttribute/i.test(text),
    );
    expect(making.map(({ path }) => path)).toEqual([]);
  });

  test('forbid tests that replace the database or a module', () => {
    const tests = sourceFiles('test');
    expect(tests.length).toBeGreaterThan(20);
    const mocking = tests.filter(
      ({ path, text }) => !path.startsWith('test/architecture/') && /jest\.(mock|unstable_mockModule)\b/.test(text),
    );
    expect(mocking.map(({ path }) => path)).toEqual([]);
  });
});

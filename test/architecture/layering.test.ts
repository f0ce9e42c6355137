import { describe, expect, test } from '@jest/globals';
import { roomOf, type SourceFile, sourceFiles } from './source-tree.js';

/** Rooms by layer, lowest first: a file imports its own room or rooms of lower layers. */
const LAYERS: readonly (readonly string[])[] = [
  ['values'],
  ['objects', 'xtdb', 'edn', 'process'],
  ['store', 'node', 'filesystem', 'lease', 'journal'],
  ['session', 'assembly', 'indexing'],
  ['client'],
  ['tools', 'harness', 'history'],
  ['host'],
  ['mcp', 'http', 'cli', 'extensions'],
  ['lab'],
  ['index', 'main'],
];
/** Imports inside one layer that the architecture draws as arrows. */
const ARROWS: ReadonlySet<string> = new Set([
  'xtdb>edn',
  'assembly>session',
  'harness>tools',
  'history>tools',
  'cli>mcp',
  'extensions>cli',
  'cli>http',
  'http>mcp',
]);
/** Who may touch the world. */
const EFFECTS: readonly { readonly what: string; readonly pattern: RegExp; readonly rooms: readonly string[] }[] = [
  { what: 'process.env or process.argv', pattern: /process\.(env|argv)\b/, rooms: ['cli', 'mcp', 'http', 'host', 'extensions', 'lab', 'main'] },
  { what: 'the console', pattern: /\bconsole\./, rooms: ['cli', 'lab'] },
  {
    what: 'the disk',
    pattern: /from 'node:fs/,
    rooms: ['process', 'lease', 'journal', 'node', 'filesystem', 'lab', 'tools', 'cli', 'mcp', 'http', 'host', 'extensions', 'main'],
  },
  { what: 'processes', pattern: /from 'node:child_process'/, rooms: ['process', 'node', 'filesystem', 'tools', 'cli', 'extensions'] },
];

const files = sourceFiles('src');
const layerOf = (room: string): number => LAYERS.findIndex((layer) => layer.includes(room));

function forbidden(file: SourceFile): readonly string[] {
  const from = roomOf(file.path);
  return file.imports
    .map(roomOf)
    .filter((to) => to !== from && !(layerOf(to) < layerOf(from)) && !ARROWS.has(`${from}>${to}`))
    .map((to) => `${file.path} imports ${to}`);
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

describe('layers', () => {
  test('the walk sees the source', () => {
    expect(files.length).toBeGreaterThan(60);
    expect(files.some(({ imports }) => imports.length > 5)).toBe(true);
  });

  test('every arrow is used', () => {
    const used = new Set(files.flatMap((file) => file.imports.map((to) => `${roomOf(file.path)}>${roomOf(to)}`)));
    expect([...ARROWS].filter((arrow) => !used.has(arrow))).toEqual([]);
  });

  test('every room has a layer', () => {
    expect([...new Set(files.map(({ path }) => roomOf(path)))].filter((room) => layerOf(room) < 0)).toEqual([]);
  });

  test('no file imports a room above or beside its own', () => {
    expect(files.flatMap(forbidden)).toEqual([]);
  });

  test('no file imports itself through others', () => {
    expect(cycles()).toEqual([]);
  });

  test.each(EFFECTS)('only the allowed rooms touch $what', ({ pattern, rooms }) => {
    const touching = files.filter(({ path, text }) => pattern.test(text) && !rooms.includes(roomOf(path)));
    expect(touching.map(({ path }) => path)).toEqual([]);
  });

  test('nothing is exported by default or by wildcard, no check is switched off', () => {
    const bad = files.filter(({ text }) => /^export default|^export \*|biome-ignore|@ts-ignore|@ts-nocheck|eslint-disable/m.test(text));
    expect(bad.map(({ path }) => path)).toEqual([]);
  });

  test('no test replaces the database or a module', () => {
    const tests = sourceFiles('test');
    expect(tests.length).toBeGreaterThan(20);
    const mocking = tests.filter(
      ({ path, text }) => !path.startsWith('test/architecture/') && /jest\.(mock|unstable_mockModule)\b/.test(text),
    );
    expect(mocking.map(({ path }) => path)).toEqual([]);
  });
});

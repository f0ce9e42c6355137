import { posix } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { HOUSE, roomOf, type SourceFile, sourceFiles } from './source-tree.js';

/** The file that lists the contracts of the program. */
const LIST = 'src/contract-list.ts';
/** The contract that the other contracts build on. */
const FOUNDATION = 'src/contracts/projection/';
/** Rooms that may name the programs of contracts. */
const KNOW_OTHERS = [...HOUSE.wings, 'contract-list'];
const OTHER_PROGRAMS = /tyrum|amplifier|cortexfs|agent[ -]?context/i;

/** Wings that a deleted line removes, with the folder of their contract. */
const LISTED_WINGS = [
  ['src/bundle/', 'src/bundle/'],
  ['src/page/', 'src/page/server/'],
] as const;

const files = sourceFiles('src');
const folders = [
  ...new Set(files.flatMap(({ path }) => (roomOf(path) === 'contracts' ? [`${posix.dirname(path)}/`] : []))),
].filter((folder) => folder !== 'src/contracts/');
/** Each folder that a deleted line removes, with the folder of its contract. */
const removable = [...folders.map((folder) => [folder, folder] as const), ...LISTED_WINGS];

/** Returns imports of a folder by files outside it that may not import it. */
function strangers(folder: string): readonly string[] {
  const mayImport = ({ path }: SourceFile): boolean =>
    path.startsWith(folder) ||
    path === LIST ||
    (folder === FOUNDATION && path.startsWith('src/contracts/')) ||
    HOUSE.arrows.includes(`${roomOf(path)}>${roomOf(folder)}`);
  return files
    .filter((file) => !mayImport(file))
    .flatMap(({ path, imports }) => imports.filter((to) => to.startsWith(folder)).map((to) => `${path} imports ${to}`));
}

describe('the wings', () => {
  test('exist, and each contract has a folder of its own', () => {
    const rooms = new Set(files.map(({ path }) => roomOf(path)));
    expect(HOUSE.wings.filter((wing) => !rooms.has(wing))).toEqual([]);
    expect(folders.length).toBeGreaterThan(3);
    expect(files.filter(({ path }) => posix.dirname(path) === 'src/contracts')).toEqual([]);
  });

  test.each(removable)('let a deleted line remove %s: only the list of contracts imports it', (folder, contract) => {
    expect(strangers(folder)).toEqual([]);
    const listed = files.find(({ path }) => path === LIST)?.imports.filter((to) => to.startsWith(folder));
    expect(listed).toEqual([`${contract}contract.ts`]);
  });

  test('are not imported by the core', () => {
    const core = files.filter(({ path }) => !HOUSE.wings.includes(roomOf(path)));
    const entries = new Set(['program', 'mcp-program', 'question-program', 'contract-list', 'index', 'main']);
    const importing = core.filter(
      ({ path, imports }) => !entries.has(roomOf(path)) && imports.some((to) => HOUSE.wings.includes(roomOf(to))),
    );
    expect(importing.map(({ path }) => path)).toEqual([]);
  });

  test('leave the core without the name of another program whose contract it keeps', () => {
    const naming = files.filter(({ path, text }) => !KNOW_OTHERS.includes(roomOf(path)) && OTHER_PROGRAMS.test(text));
    expect(naming.map(({ path }) => path)).toEqual([]);
    expect(files.some(({ text }) => OTHER_PROGRAMS.test(text))).toBe(true);
  });
});

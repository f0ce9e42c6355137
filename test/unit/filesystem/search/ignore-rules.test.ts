import { execFileSync } from 'node:child_process';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readIgnorePattern } from '../../../../src/filesystem/search/ignore-pattern.js';
import { IgnoreRules } from '../../../../src/filesystem/search/ignore-rules.js';
import { cpuMsOf } from '../../../support/cpu-time.js';
import { effort } from '../../../support/effort.js';
import { type TempFolder, tempFolder } from '../temp-folder.js';

let folder: TempFolder;
beforeEach(async () => {
  folder = await tempFolder();
});
afterEach(() => folder.remove());

function git(...args: readonly string[]): (input: string) => string {
  const env = { PATH: process.env.PATH, HOME: folder.base, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
  return (input) => {
    try {
      return execFileSync('git', args, { cwd: folder.inside, input, encoding: 'utf8', env });
    } catch (error) {
      if ((error as { status?: number }).status === 1) return '';
      throw error;
    }
  };
}

const FOLDERS = ['a', 'a/a', 'a/b', 'a/b/a', 'a/a/b', 'b', 'b/ab', 'b/ab/a', 'é', 'a b', 'a-b', 'ab'];
const FILES = ['a.b', 'ba', 'aab', 'b ', 'é.a', '[a]', 'a*', '!a', '#a', 'a]', 'x\\'];
const PATHS = [
  ...FOLDERS.map((path) => ({ path, isFolder: true })),
  ...['', 'a/', 'a/b/', 'a/b/a/', 'b/ab/', 'é/'].flatMap((at) =>
    FILES.map((name) => ({ path: `${at}${name}`, isFolder: false })),
  ),
];

const PIECE = fc.oneof(
  { arbitrary: fc.constantFrom('a', 'b', '/', '*', '**', '**/', '/**', '/**/'), weight: 6 },
  fc.constantFrom(
    '?',
    'é',
    '.',
    '***',
    '\\*',
    '\\/',
    '\\',
    '\\a',
    ' ',
    '\\ ',
    '[ab]',
    '[!a]',
    '[^b-]',
    '[a-z]',
    '[]a]',
    '[[:alpha:]]',
    '[[:bad:]]',
    '[[:cntrl:]]',
    '[^[:cntrl:]]',
  ),
  fc.constantFrom(
    '[',
    ']',
    '[a',
    '[!',
    '[b-a]',
    '[a-\\b]',
    '[[:a]',
    '[\\]]',
    '#',
    '!',
    '\\!',
    '\\#',
    '[[:punct:]]',
    '[/]',
    '[^/]',
  ),
);
const LINE = fc
  .tuple(
    fc.constantFrom('', '', '', '!', '/'),
    fc.array(PIECE, { minLength: 1, maxLength: 6 }),
    fc.constantFrom('', '', '/', ' ', '\r'),
  )
  .map(([before, pieces, after]) => before + pieces.join('') + after);
const RULES = fc.array(LINE, { minLength: 1, maxLength: 4 }).map((lines) => lines.join('\n'));

test('ignores the same files as git for random rules in a folder and its subfolders', async () => {
  await Promise.all(FOLDERS.map((path) => mkdir(join(folder.inside, path), { recursive: true })));
  await Promise.all(
    PATHS.filter(({ isFolder }) => !isFolder).map(({ path }) => writeFile(join(folder.inside, path), '')),
  );
  git('init', '-q')('');
  const ignoredByGit = git('check-ignore', '--stdin', '-z', '--no-index');
  let ignored = 0;
  await fc.assert(
    fc.asyncProperty(RULES, fc.option(RULES), fc.option(RULES), async (rules, deeper, exclude) => {
      await writeFile(join(folder.inside, '.git/info/exclude'), exclude ?? '');
      await writeFile(join(folder.inside, '.gitignore'), rules);
      if (deeper === null) await rm(join(folder.inside, 'a/.gitignore'), { force: true });
      else await writeFile(join(folder.inside, 'a/.gitignore'), deeper);
      const expected = ignoredByGit(PATHS.map(({ path }) => `${path}\0`).join(''))
        .split('\0')
        .slice(0, -1);
      ignored += expected.length;
      const loaded = new Map<string, IgnoreRules>();
      const ours: string[] = [];
      for (const { path, isFolder } of PATHS) {
        const whole = join(folder.inside, path);
        const at = dirname(whole);
        const known = loaded.get(at) ?? (await IgnoreRules.load(at));
        loaded.set(at, known);
        if (known.folderIgnored || known.ignores(whole, isFolder)) ours.push(path);
      }
      expect([rules, deeper, exclude, ours.sort()]).toEqual([rules, deeper, exclude, expected.sort()]);
    }),
    {
      numRuns: effort(60, 3000),
      examples: [
        ['a/**/', null, null],
        ['a**/b', null, null],
        ['/**/a\n!a/', '!a\nb', null],
        ['a/***/b\n*\\ ', null, null],
        ['!ba', null, 'ba\n/b/'],
      ],
    },
  );
  expect(ignored).toBeGreaterThan(200);
});

test('takes time linear in the path for any number of folder wildcards', async () => {
  const rules = `${'a/**/'.repeat(12)}\n`;
  await writeFile(join(folder.inside, '.gitignore'), rules);
  const loaded = await IgnoreRules.load(folder.inside);
  const deep = join(folder.inside, ...Array.from({ length: 400 }, () => 'a'), 'b');
  // There are more than 10^20 ways to spread the folders over the pattern.
  expect(cpuMsOf(() => expect(loaded.ignores(deep, false)).toBe(true))).toBeLessThan(5_000);
  const never = readIgnorePattern(`${'a/**/'.repeat(12)}c`);
  expect(
    cpuMsOf(() =>
      expect(never?.matches(`${'a/'.repeat(2000)}b`, false, { left: Number.POSITIVE_INFINITY })).toBe(false),
    ),
  ).toBeLessThan(5_000);
  const stars = readIgnorePattern(`${'*a'.repeat(500)}*b`);
  expect(
    cpuMsOf(() => expect(stars?.matches('a'.repeat(4000), false, { left: Number.POSITIVE_INFINITY })).toBe(false)),
  ).toBeLessThan(5_000);
  expect(cpuMsOf(() => readIgnorePattern(`a${' '.repeat(500_000)}b${'\\ '.repeat(200_000)}`))).toBeLessThan(5_000);
});

test('caps the kept characters of wildcard patterns; keeps all plain and suffix patterns', async () => {
  await writeFile(join(folder.inside, '.gitignore'), `${'[a]?b*\n'.repeat(20_000)}*q*z\nplain\n*.log\n`);
  const loaded = await IgnoreRules.load(folder.inside);
  const ignores = (name: string) => loaded.ignores(join(folder.inside, name), false);
  expect(['acbx', 'plain', 'x.log', 'qz', 'other'].map(ignores)).toEqual([true, true, true, false, false]);
});

test('does not read an exclude file through a link on its path', async () => {
  git('init', '-q')('');
  await folder.put('elsewhere/exclude', 'a.b\n');
  await rm(join(folder.inside, '.git/info'), { recursive: true });
  await symlink(join(folder.base, 'elsewhere'), join(folder.inside, '.git/info'));
  expect((await IgnoreRules.load(folder.inside)).ignores(join(folder.inside, 'a.b'), false)).toBe(false);
  await rm(join(folder.inside, '.git/info'));
  await folder.put('root/.git/info/exclude', 'a.b\n');
  expect((await IgnoreRules.load(folder.inside)).ignores(join(folder.inside, 'a.b'), false)).toBe(true);
});

import { execFileSync } from 'node:child_process';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { escapeName, listDirectory } from '../../../../src/filesystem/access/list-directory.js';
import { datedFiles } from '../../../../src/filesystem/access/regular-files.js';
import { AllowedRoots } from '../../../../src/filesystem/access/roots.js';
import { ignoredNames } from '../../../../src/filesystem/search/ignore-rules.js';
import { ripgrepPath } from '../../../../src/filesystem/search/ripgrep.js';
import { findFiles, walkFiles } from '../../../../src/filesystem/search/walk.js';
import { type TempFolder, tempFolder, unprivileged } from '../temp-folder.js';

let folder: TempFolder;
let roots: AllowedRoots;
const BAD_NAME = Buffer.from([0x62, 0xff, 0x2e, 0x74, 0x78, 0x74]);

beforeEach(async () => {
  folder = await tempFolder();
  const files: Readonly<Record<string, string>> = {
    '.gitignore': '*.log\n/build/\nnode_modules/\n# comment\n!keep.log\n',
    '.git/config': '[core]',
    '.hidden/x.ts': 'x',
    'a.ts': 'a',
    'b.log': 'log',
    'keep.log': 'kept',
    'build/out.js': 'out',
    'node_modules/p/build/x.js': 'x',
    'node_modules/p/y.log': 'x',
    'src/build/in.js': 'in',
    'src/.gitignore': '!b.log\n*.tmp\n/only-here.ts\n',
    'src/b.log': 'kept by the deeper file',
    'src/c.tmp': 'tmp',
    'src/only-here.ts': 'x',
    'src/deep/only-here.ts': 'x',
    'src/deep/.git': 'gitdir: elsewhere',
    'node_modules/p/index.js': 'x',
    'src/node_modules/q/index.js': 'x',
  };
  for (const [path, content] of Object.entries(files)) await folder.put(`root/${path}`, content);
  await folder.put('outside/secret.ts', 'secret');
  await symlink(join(folder.outside, 'secret.ts'), join(folder.inside, 'file-link.ts'));
  await symlink(folder.outside, join(folder.inside, 'dir-link'));
  await symlink('src', join(folder.inside, 'src-link'));
  execFileSync('mkfifo', [join(folder.inside, 'pipe.ts')]);
  await writeFile(Buffer.concat([Buffer.from(`${folder.inside}/`), BAD_NAME]), 'x');
  roots = await AllowedRoots.open([folder.inside]);
});
afterEach(() => folder.remove());

const KEPT = [
  '.gitignore',
  '.hidden/x.ts',
  'a.ts',
  'keep.log',
  'src/.gitignore',
  'src/b.log',
  'src/build/in.js',
  'src/deep/only-here.ts',
];

test('finds the search program that is installed with the package', async () => {
  expect(await ripgrepPath()).toMatch(/ripgrep.*rg/);
});

describe('a walk', () => {
  test('honours nested ignore files, includes hidden files, skips .git, links, pipes and invalid names', async () => {
    expect(await walkFiles(roots, folder.inside)).toEqual({
      paths: KEPT,
      truncated: false,
      timedOut: false,
      unaddressable: 1,
    });
  });

  test('honours the rules above a subfolder', async () => {
    expect((await walkFiles(roots, join(folder.inside, 'src'))).paths).toEqual(
      KEPT.filter((path) => path.startsWith('src/')).map((path) => path.slice(4)),
    );
  });

  test('shows the contents of an ignored folder that is named itself', async () => {
    expect((await walkFiles(roots, join(folder.inside, 'node_modules'))).paths).toEqual([
      'p/build/x.js',
      'p/index.js',
      'p/y.log',
    ]);
  });

  test.each([
    ['a repository', '.git/HEAD'],
    ['a submodule', '.git'],
  ])('follows only the rules of %s inside another one, wherever it begins', async (_what, mark) => {
    await folder.put('root/outer/.git/info/exclude', '*.mine\n');
    await folder.put('root/outer/.gitignore', '*.outer\n');
    await folder.put(`root/outer/sub/${mark}`, '');
    await folder.put('root/outer/sub/.gitignore', '*.inner\n');
    for (const name of ['a.outer', 'a.inner', 'a.mine', 'deep/b.outer', 'deep/b.inner']) {
      await folder.put(`root/outer/sub/${name}`, '');
      await folder.put(`root/outer/${name}`, '');
    }
    const inner = ['.gitignore', 'a.mine', 'a.outer', 'deep/b.outer'];
    const paths = async (path: string): Promise<readonly string[]> =>
      (await walkFiles(roots, join(folder.inside, path))).paths;
    expect(await paths('outer/sub')).toEqual(inner);
    expect(await paths('outer/sub/deep')).toEqual(['b.outer']);
    expect(await paths('outer')).toEqual([
      '.gitignore',
      'a.inner',
      'deep/b.inner',
      ...inner.map((path) => `sub/${path}`),
    ]);
  });

  test('reports that it stopped at its limit', async () => {
    expect(await walkFiles(roots, folder.inside, { limit: 2 })).toMatchObject({
      paths: KEPT.slice(0, 2),
      truncated: true,
    });
    expect(await walkFiles(roots, folder.inside, { limit: KEPT.length })).toMatchObject({
      paths: KEPT,
      truncated: false,
    });
  });

  test('refuses an outside folder, a file and a missing folder', async () => {
    await expect(walkFiles(roots, folder.outside)).rejects.toMatchObject({ code: 'outside-roots' });
    await expect(walkFiles(roots, join(folder.inside, 'src-link'))).rejects.toMatchObject({
      code: 'changed-underneath',
    });
    await expect(walkFiles(roots, join(folder.inside, 'a.ts'))).rejects.toMatchObject({ code: 'not-regular' });
    await expect(walkFiles(roots, join(folder.inside, 'none'))).rejects.toMatchObject({ code: 'not-found' });
  });

  test('skips a folder without permission', async () => {
    await chmod(folder.base, 0o755);
    await mkdir(join(folder.inside, 'closed'), { mode: 0o000 });
    await unprivileged(async () => expect((await walkFiles(roots, folder.inside)).paths).toEqual(KEPT));
  });

  test('rejects on abort and stops at its time limit', async () => {
    await expect(walkFiles(roots, folder.inside, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'AbortError',
    });
    const abort = new AbortController();
    const walking = walkFiles(roots, folder.inside, {
      signal: abort.signal,
      accept: () => {
        abort.abort();
        return true;
      },
    });
    await expect(walking).rejects.toMatchObject({ name: 'AbortError' });
    expect((await walkFiles(roots, folder.inside, { timeoutMs: 0 })).timedOut).toBe(true);
  });

  test('finds by glob', async () => {
    const found = await findFiles(roots, folder.inside, { pattern: '*.ts' });
    expect(found.paths).toEqual(
      ['.hidden/x.ts', 'a.ts', 'src/deep/only-here.ts'].map((path) => join(folder.inside, path)),
    );
    expect((await findFiles(roots, folder.inside, { pattern: 'src/*', limit: 1 })).truncated).toBe(true);
    await expect(findFiles(roots, folder.inside, { pattern: '[a' })).rejects.toMatchObject({ code: 'invalid-glob' });
  });
});

describe('listing one folder', () => {
  test('returns all entries in code unit order, marks links, escapes and counts odd names', async () => {
    const { entries, unaddressable } = await listDirectory(roots, folder.inside);
    const shown = entries.map(({ name, kind, target }) => [name, kind, target]);
    expect(shown).toEqual([
      ['.git', 'directory', undefined],
      ['.gitignore', 'file', undefined],
      ['.hidden', 'directory', undefined],
      ['a.ts', 'file', undefined],
      ['b.log', 'file', undefined],
      ['b\\xff.txt', 'file', undefined],
      ['build', 'directory', undefined],
      ['dir-link', 'symlink', undefined],
      ['file-link.ts', 'symlink', undefined],
      ['keep.log', 'file', undefined],
      ['node_modules', 'directory', undefined],
      ['pipe.ts', 'fifo', undefined],
      ['src', 'directory', undefined],
      ['src-link', 'symlink', 'directory'],
    ]);
    expect(unaddressable).toBe(1);
    expect(entries.find(({ name }) => name.includes('xff'))?.addressable).toBe(false);
  });

  test('refuses a file, a missing folder and an outside one', async () => {
    await expect(listDirectory(roots, join(folder.inside, 'a.ts'))).rejects.toMatchObject({ code: 'not-regular' });
    await expect(listDirectory(roots, join(folder.inside, 'none'))).rejects.toMatchObject({ code: 'not-found' });
    await expect(listDirectory(roots, folder.outside)).rejects.toMatchObject({ code: 'outside-roots' });
    await expect(listDirectory(roots, join(folder.inside, 'dir-link'))).rejects.toMatchObject({
      code: 'changed-underneath',
    });
  });

  test('keeps the valid part of names that are not UTF-8', () => {
    expect(escapeName(Buffer.from([0xc3, 0xa9, 0xc3, 0x28, 0x80]))).toBe('é\\xc3(\\x80');
  });
});

describe('discoverable names (decision C7)', () => {
  test('exclude ignored names of a folder; an ignored folder and .git show all of theirs', async () => {
    const files = (...names: readonly string[]) => names.map((name) => ({ name, isFolder: false }));
    const inside = (path: string) => join(folder.inside, path);
    expect([
      ...(await ignoredNames(folder.inside, [
        ...files('a.ts', 'b.log', 'keep.log'),
        { name: 'build', isFolder: true },
      ])),
    ]).toEqual(['b.log', 'build']);
    expect([...(await ignoredNames(inside('src'), files('b.log', 'c.tmp', 'only-here.ts', 'x.ts')))]).toEqual([
      'c.tmp',
      'only-here.ts',
    ]);
    expect([...(await ignoredNames(inside('node_modules/p'), files('index.js')))]).toEqual(['index.js']);
    expect([...(await ignoredNames(inside('.git'), files('config')))]).toEqual(['config']);
  });

  test('include only regular files inside the roots, reached without links', async () => {
    const paths = [
      'a.ts',
      'none',
      'src',
      'file-link.ts',
      'dir-link/secret.ts',
      'src-link/b.log',
      'pipe.ts',
      'src/b.log',
      '../outside/secret.ts',
    ];
    const found = await datedFiles(
      roots,
      paths.map((path) => join(folder.inside, path)),
    );
    expect(found.map(({ path }) => path)).toEqual([join(folder.inside, 'a.ts'), join(folder.inside, 'src/b.log')]);
  });
});

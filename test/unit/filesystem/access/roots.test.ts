import { chmod, link, mkdir, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { named, type SourceError } from '../../../../src/filesystem/access/errors.js';
import { AllowedRoots } from '../../../../src/filesystem/access/roots.js';
import { type TempFolder, tempFolder, unprivileged } from '../temp-folder.js';

let folder: TempFolder;
let roots: AllowedRoots;

beforeEach(async () => {
  folder = await tempFolder();
  await folder.put('root/a.txt', 'a');
  await folder.put('root/src/b.txt', 'b');
  await folder.put('outside/secret.txt', 'secret');
  await folder.put('root-sibling/c.txt', 'c');
  roots = await AllowedRoots.open([folder.inside]);
});
afterEach(() => folder.remove());

const resolve = (path: string, mustExist = true) => roots.resolve(path, { cwd: folder.inside, mustExist });
const refusal = async (path: string, mustExist = true): Promise<SourceError> => {
  const error = await resolve(path, mustExist).then(
    (found) => new Error(`was accepted as ${found.path}`),
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ name: 'SourceError' });
  const refused = error as SourceError;
  // The message shows only the given path: no link target, no folder of the machine.
  expect(refused.message.replace(named(path), '')).not.toMatch(/[/"]/);
  return refused;
};
const code = async (path: string, mustExist = true) => (await refusal(path, mustExist)).code;

describe('paths inside the roots', () => {
  test('include absolute and relative paths, folders, and the root itself', async () => {
    expect(await resolve('a.txt')).toEqual({ path: join(folder.inside, 'a.txt'), exists: true });
    expect((await resolve(join(folder.inside, 'src/../src/./b.txt'))).path).toBe(join(folder.inside, 'src/b.txt'));
    expect((await resolve('src')).path).toBe(join(folder.inside, 'src'));
    expect((await resolve('.')).path).toBe(folder.inside);
    expect((await resolve('..\\x', false)).path).toBe(join(folder.inside, '..\\x'));
  });

  test('resolve links that stay inside to the real path', async () => {
    await symlink('src', join(folder.inside, 'alias'));
    expect((await resolve('alias/b.txt')).path).toBe(join(folder.inside, 'src/b.txt'));
    expect(await resolve('alias/new/deep.txt', false)).toEqual({
      path: join(folder.inside, 'src/new/deep.txt'),
      exists: false,
    });
  });

  test('include a root given through a link, and a path through that link', async () => {
    const alias = join(folder.base, 'alias');
    await symlink(folder.inside, alias);
    const aliased = await AllowedRoots.open([alias]);
    expect(aliased.roots).toEqual([folder.inside]);
    expect((await aliased.resolve(join(alias, 'a.txt'))).path).toBe(join(folder.inside, 'a.txt'));
    expect((await aliased.resolve(join(alias, 'new.txt'), { mustExist: false })).path).toBe(
      join(folder.inside, 'new.txt'),
    );
  });

  test('include a hard link to an outside file, which is indistinguishable', async () => {
    await link(join(folder.outside, 'secret.txt'), join(folder.inside, 'hard.txt'));
    expect((await resolve('hard.txt')).exists).toBe(true);
  });

  test('differ by case and by Unicode form', async () => {
    await folder.put('root/\u00e9.txt', 'composed');
    expect(await code('e\u0301.txt')).toBe('not-found');
    expect(await code('A.TXT')).toBe('not-found');
  });
});

describe('paths outside the roots', () => {
  test.each([
    '../outside/secret.txt',
    '/etc/passwd',
    'src/../../outside/secret.txt',
    '../root-sibling/c.txt',
    '..',
    '/',
  ])('are refused: %s', async (path) => {
    expect(await code(path)).toBe('outside-roots');
    expect(await code(path, false)).toBe('outside-roots');
  });

  test('get the same answer whether they exist or not', async () => {
    const there = await refusal('/etc/hostname');
    const gone = await refusal('/etc/no-such-file');
    expect([there.code, gone.code]).toEqual(['outside-roots', 'outside-roots']);
    expect(there.message.replace('hostname', 'x')).toBe(gone.message.replace('no-such-file', 'x'));
  });

  test('are refused through a link to a file, to a folder, and through a link to a link', async () => {
    await symlink(join(folder.outside, 'secret.txt'), join(folder.inside, 'file-link'));
    await symlink(folder.outside, join(folder.inside, 'dir-link'));
    await symlink('dir-link', join(folder.inside, 'twice'));
    for (const path of [
      'file-link',
      'dir-link',
      'dir-link/secret.txt',
      'twice/secret.txt',
      'dir-link/none',
      'dir-link/none/none',
    ]) {
      expect(await code(path)).toBe('outside-roots');
      expect(await code(path, false)).toBe('outside-roots');
    }
  });

  test('are refused through a dangling link for reading and writing, as outside if it leads there', async () => {
    await symlink(join(folder.outside, 'new.txt'), join(folder.inside, 'out'));
    await symlink(join(folder.outside, 'no/such/folder'), join(folder.inside, 'out-dir'));
    await symlink('nowhere.txt', join(folder.inside, 'in'));
    await symlink('out', join(folder.inside, 'chain'));
    for (const path of ['out', 'chain', 'out-dir/x', 'out-dir']) expect(await code(path, false)).toBe('outside-roots');
    for (const mustExist of [true, false]) expect(await code('in', mustExist)).toBe('not-found');
  });

  test('include the kernel’s folders, even if the root is /', async () => {
    const all = await AllowedRoots.open(['/']);
    for (const path of ['/proc/self/environ', '/proc/self/cwd/package.json', '/dev/null', '/dev/fd/0', '/sys']) {
      expect(await code(path)).toBe('outside-roots');
      await expect(all.resolve(path)).rejects.toMatchObject({ code: 'outside-roots' });
    }
    await symlink('/proc/self', join(folder.inside, 'me'));
    expect(await code('me/environ')).toBe('outside-roots');
    expect((await all.resolve(join(folder.inside, 'a.txt'))).exists).toBe(true);
  });
});

describe('invalid paths', () => {
  test.each([
    ['', 'invalid-path'],
    ['a\0b', 'invalid-path'],
    ['\ud83d.txt', 'invalid-path'],
    ['x'.repeat(300), 'invalid-path'],
    [`${'d/'.repeat(3000)}x`, 'invalid-path'],
    ['a.txt/below', 'not-found'],
    ['missing.txt', 'not-found'],
  ])('are refused: case %#', async (path, expected) => {
    expect(await code(path)).toBe(expected);
  });

  test('include a relative path without a base folder', async () => {
    await expect(roots.resolve('a.txt')).rejects.toMatchObject({ code: 'invalid-path' });
  });

  test('include a loop of links, also below it', async () => {
    await symlink('two', join(folder.inside, 'one'));
    await symlink('one', join(folder.inside, 'two'));
    expect([await code('one'), await code('one', false), await code('two/x', false)]).toEqual(['loop', 'loop', 'loop']);
  });

  test('include a folder without permission', async () => {
    await chmod(folder.base, 0o755);
    await chmod(join(folder.inside, 'src'), 0o700);
    await unprivileged(async () => expect(await code('src/b.txt')).toBe('no-permission'));
  });
});

describe('the roots themselves', () => {
  test('may be several and nested; a file, a missing folder and an empty list are refused', async () => {
    const nested = await AllowedRoots.open([folder.inside, join(folder.inside, 'src'), folder.outside, folder.outside]);
    expect(nested.roots).toHaveLength(3);
    expect(nested.rootOf(join(folder.inside, 'src/b.txt'))).toBe(join(folder.inside, 'src'));
    expect((await nested.resolve(join(folder.outside, 'secret.txt'))).exists).toBe(true);
    await expect(AllowedRoots.open([join(folder.inside, 'a.txt')])).rejects.toMatchObject({ code: 'not-regular' });
    await expect(AllowedRoots.open([join(folder.inside, 'none')])).rejects.toMatchObject({ code: 'not-found' });
    await expect(AllowedRoots.open([])).rejects.toMatchObject({ code: 'invalid-path' });
  });

  test('report an anchor as absent once its folder is gone; a mount below a root is its own anchor (C5)', async () => {
    await mkdir(join(folder.inside, 'mnt'));
    const mounted = await AllowedRoots.open([folder.inside], [join(folder.inside, 'mnt')]);
    expect(await mounted.anchorPresent(join(folder.inside, 'mnt/x'))).toBe(true);
    await rm(join(folder.inside, 'mnt'), { recursive: true });
    expect(await mounted.anchorPresent(join(folder.inside, 'mnt/x'))).toBe(false);
    expect(await mounted.anchorPresent(join(folder.inside, 'a.txt'))).toBe(true);
    await rename(folder.inside, join(folder.base, 'moved'));
    expect(await mounted.anchorPresent(join(folder.inside, 'a.txt'))).toBe(false);
    expect(await mounted.anchorPresent('/elsewhere')).toBe(false);
  });
});

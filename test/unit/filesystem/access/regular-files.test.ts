import { mkdir, mkdtemp, realpath, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { datedFiles } from '../../../../src/filesystem/access/regular-files.js';
import { AllowedRoots } from '../../../../src/filesystem/access/roots.js';

describe('files that a listing mentions (decision C7)', () => {
  let outer: string;
  let root: string;
  let roots: AllowedRoots;

  beforeEach(async () => {
    outer = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-times-')));
    root = join(outer, 'root');
    await mkdir(join(root, 'sub'), { recursive: true });
    await writeFile(join(root, 'a.txt'), 'a');
    await writeFile(join(root, 'sub/b.txt'), 'b');
    await writeFile(join(outer, 'secret.txt'), 's');
    await utimes(join(root, 'a.txt'), 1_700_000_000.25, 1_700_000_000.5);
    roots = await AllowedRoots.open([root]);
  });

  afterEach(() => rm(outer, { recursive: true, force: true }));

  test('are returned in order with modification times in whole milliseconds', async () => {
    const found = await datedFiles(roots, [join(root, 'sub/b.txt'), join(root, 'a.txt')]);
    expect(found.map(({ path }) => path)).toEqual([join(root, 'sub/b.txt'), join(root, 'a.txt')]);
    expect(found[1]?.mtimeMs).toBe(1_700_000_000_500);
  });

  test('are regular files inside the roots under their real names: no folders, links, missing, outside', async () => {
    await symlink(join(root, 'a.txt'), join(root, 'link.txt'));
    await symlink(join(root, 'sub'), join(root, 'linked'));
    await symlink(outer, join(root, 'out'));
    const paths = [
      'sub',
      'link.txt',
      'linked/b.txt',
      'out/secret.txt',
      'missing.txt',
      '../secret.txt',
      'no/folder.txt',
    ].map((path) => join(root, path));
    expect(await datedFiles(roots, paths)).toEqual([]);
  });
});

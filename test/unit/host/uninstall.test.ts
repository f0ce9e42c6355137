import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { leftovers, ownFolders, removeLeftovers } from '../../../src/maintenance/uninstall.js';

let root = '';
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'uninstall-')));
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function put(...paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await mkdir(join(root, 'data', path, '..'), { recursive: true });
    await writeFile(join(root, 'data', path), '{}');
  }
}
const folders = () => ({
  dataDir: join(root, 'data'),
  cacheDir: join(root, 'cache'),
  runtimeDir: join(root, 'data/run'),
});
const remove = async (): Promise<readonly string[]> => removeLeftovers(await leftovers(folders()));

describe('uninstall --data', () => {
  test('removes the list of imported sessions, which has titles of prompts', async () => {
    await put('palimpsest.json', 'imported-sessions.json', 'own-sessions.json');
    expect(await remove()).toEqual([]);
    expect(await readdir(root)).toEqual([]);
  });

  test('removes the files of hooks, the watcher, the gateway and restores', async () => {
    await put('palimpsest.json', 'hooks/palimpsest-hook', 'hooks/start', 'watch.log', 'watch.1.lock', 'watch.json');
    await put('watch-gateway.json', 'gateway/2026.log', 'restores/one.json');
    expect(await remove()).toEqual([]);
    expect(await readdir(root)).toEqual([]);
  });

  test('leaves a folder of another program alone, although it has names of ours', async () => {
    await put('logs/mine.log', 'users/me.json', 'Makefile');
    expect(await remove()).toEqual(['Makefile', 'logs', 'users'].map((name) => join(root, 'data', name)));
    expect(await readdir(join(root, 'data', 'logs'))).toEqual(['mine.log']);
  });

  test('keeps the backups of settings that were not restored', async () => {
    await put('palimpsest.json', 'agents/record.json', 'agents/a.backup', 'logs/node.log');
    expect(await remove()).toEqual([join(root, 'data', 'agents')]);
    expect(await readdir(join(root, 'data'))).toEqual(['agents']);
    expect(await readdir(join(root, 'data', 'agents'))).toEqual(['a.backup', 'record.json']);
  });

  test('removes a link in the data folder and not its target', async () => {
    await put('palimpsest.json');
    await mkdir(join(root, 'else'));
    await writeFile(join(root, 'else', 'file'), '');
    await symlink(join(root, 'else'), join(root, 'data', 'logs'));
    expect(await remove()).toEqual([]);
    expect(await readdir(join(root, 'else'))).toEqual(['file']);
  });

  test.each([homedir(), '/'])('refuses a data folder that holds the home: %s', async (dataDir) => {
    await expect(ownFolders({ dataDir } as Parameters<typeof ownFolders>[0])).rejects.toThrow(/holds your home folder/);
  });
});

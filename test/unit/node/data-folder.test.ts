import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { findDataFolder, openDataFolder } from '../../../src/node/data-folder.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

describe('the data folder', () => {
  test('a new one is made for its owner alone and says its format', () =>
    withTemporaryFolder(async (dir) => {
      const { dir: made } = await openDataFolder(join(dir, 'a', 'b'));
      expect((await stat(made)).mode & 0o777).toBe(0o700);
      expect(JSON.parse(await readFile(join(made, 'palimpsest.json'), 'utf8'))).toEqual({ format: 1 });
      expect((await openDataFolder(made)).dir).toBe(made);
    }));

  test('two names of one folder are one folder', () =>
    withTemporaryFolder(async (dir) => {
      const { dir: made } = await openDataFolder(join(dir, 'real'));
      await symlink(made, join(dir, 'link'));
      expect((await openDataFolder(join(dir, 'link'))).dir).toBe(made);
      expect((await findDataFolder(join(dir, 'link')))?.dir).toBe(made);
    }));

  test('looking for one makes none', () =>
    withTemporaryFolder(async (dir) => {
      expect(await findDataFolder(join(dir, 'none'))).toBeUndefined();
    }));

  test('a newer format is refused with both numbers', () =>
    withTemporaryFolder(async (dir) => {
      await writeFile(join(dir, 'palimpsest.json'), '{"format":2}');
      await expect(openDataFolder(dir)).rejects.toMatchObject({ code: 'data-newer', message: expect.stringMatching(/format 2.*up to 1/) });
    }));

  test.each(['', '{', '[]', '{"format":"1"}', '{"format":0}', '\u0000\u0000'])('a marker %j is corrupt', (text) =>
    withTemporaryFolder(async (dir) => {
      await writeFile(join(dir, 'palimpsest.json'), text);
      await expect(openDataFolder(dir)).rejects.toMatchObject({ code: 'data-corrupt' });
    }),
  );

  test('a database without a marker is refused rather than guessed at', () =>
    withTemporaryFolder(async (dir) => {
      await mkdir(join(dir, 'golden'));
      await expect(openDataFolder(dir)).rejects.toMatchObject({ code: 'data-corrupt', message: expect.stringContaining('golden') });
    }));

  test('a place where no folder can be is unwritable', () =>
    withTemporaryFolder(async (dir) => {
      await writeFile(join(dir, 'file'), '');
      await expect(openDataFolder(join(dir, 'file', 'data'))).rejects.toMatchObject({
        code: 'data-unwritable',
        message: expect.stringContaining('--data'),
      });
    }));
});

import { chmod, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import {
  findDataFolder,
  MAX_SOCKET_PATH_BYTES,
  makeRuntimeFolder,
  openDataFolder,
  runtimeFolderFor,
  socketIn,
} from '../../../src/node/data-folder.js';
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

const roots = { runtimeDir: '/run/user/1000', tmpDir: '/tmp', user: '1000' };
const long = `/home/someone/${'x'.repeat(90)}`;

describe('where the socket goes', () => {
  test('into the data folder when its path is short', () => {
    expect(runtimeFolderFor('/home/someone/data', roots)).toBe('/home/someone/data/run');
  });
  test('else into the XDG runtime folder, else into the temporary one, always with a short path', () => {
    const own = runtimeFolderFor(long, roots);
    expect(own).toMatch(/^\/run\/user\/1000\/palimpsest\/[0-9a-f]{16}$/);
    const shared = runtimeFolderFor(long, { ...roots, runtimeDir: undefined });
    expect(shared).toMatch(/^\/tmp\/palimpsest-1000-[0-9a-f]{16}$/);
    expect(runtimeFolderFor(long, { ...roots, runtimeDir: `/run/${'y'.repeat(90)}` })).toBe(shared);
    expect(Buffer.byteLength(socketIn(own))).toBeLessThanOrEqual(MAX_SOCKET_PATH_BYTES);
  });
  test('long data folders have different ones', () => {
    expect(runtimeFolderFor(`${long}1`, roots)).not.toBe(runtimeFolderFor(`${long}2`, roots));
  });
  test('lengths count in bytes, not in characters', () => {
    expect(runtimeFolderFor(`/home/${'ä'.repeat(45)}`, roots)).toMatch(/^\/run\/user/);
  });
  test('a folder open to others is refused', () =>
    withTemporaryFolder(async (dir) => {
      const made = await makeRuntimeFolder(dir, undefined);
      expect((await stat(made)).mode & 0o777).toBe(0o700);
      expect(await makeRuntimeFolder(dir, undefined)).toBe(made);
      await chmod(made, 0o755);
      await expect(makeRuntimeFolder(dir, undefined)).rejects.toMatchObject({
        code: 'data-unwritable',
        message: expect.stringContaining('0700'),
      });
      await rm(made, { recursive: true });
      await mkdir(join(dir, 'elsewhere'), { mode: 0o700 });
    }));
});

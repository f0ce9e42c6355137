import { chmod, chown, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { findDataFolder, openDataFolder, protectDataFolder } from '../../../src/node/data-folder.js';
import {
  MAX_SOCKET_PATH_BYTES,
  makeRuntimeFolder,
  runtimeFolderFor,
  socketIn,
} from '../../../src/node/runtime-folder.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

describe('the data folder', () => {
  test('is created for its owner alone with its format', () =>
    withTemporaryFolder(async (dir) => {
      const { dir: made } = await openDataFolder(join(dir, 'a', 'b'));
      expect((await stat(made)).mode & 0o777).toBe(0o700);
      expect(JSON.parse(await readFile(join(made, 'palimpsest.json'), 'utf8'))).toEqual({ format: 2 });
      expect((await openDataFolder(made)).dir).toBe(made);
    }));

  test('is the same under two names', () =>
    withTemporaryFolder(async (dir) => {
      const { dir: made } = await openDataFolder(join(dir, 'real'));
      await symlink(made, join(dir, 'link'));
      expect((await openDataFolder(join(dir, 'link'))).dir).toBe(made);
      expect((await findDataFolder(join(dir, 'link')))?.dir).toBe(made);
    }));

  test('is not created by a lookup', () =>
    withTemporaryFolder(async (dir) => {
      expect(await findDataFolder(join(dir, 'none'))).toBeUndefined();
    }));

  test('is refused with both numbers if its format is newer', () =>
    withTemporaryFolder(async (dir) => {
      await writeFile(join(dir, 'palimpsest.json'), '{"format":3}');
      await expect(openDataFolder(dir)).rejects.toMatchObject({
        code: 'data-newer',
        message: expect.stringMatching(/format 3.*up to 2/),
      });
    }));

  test('is upgraded from an older format before anything new is written', () =>
    withTemporaryFolder(async (dir) => {
      await writeFile(join(dir, 'palimpsest.json'), '{"format":1}');
      await openDataFolder(dir);
      expect(JSON.parse(await readFile(join(dir, 'palimpsest.json'), 'utf8'))).toEqual({ format: 2 });
    }));

  test.each(['', '{', '[]', '{"format":"1"}', '{"format":0}', '\u0000\u0000'])('is corrupt with a marker %j', (text) =>
    withTemporaryFolder(async (dir) => {
      await writeFile(join(dir, 'palimpsest.json'), text);
      await expect(openDataFolder(dir)).rejects.toMatchObject({ code: 'data-corrupt' });
    }),
  );

  test('is refused with a database but without a marker', () =>
    withTemporaryFolder(async (dir) => {
      await mkdir(join(dir, 'golden'));
      await expect(openDataFolder(dir)).rejects.toMatchObject({
        code: 'data-corrupt',
        message: expect.stringContaining('golden'),
      });
    }));

  test('is unwritable in an impossible place', () =>
    withTemporaryFolder(async (dir) => {
      await writeFile(join(dir, 'file'), '');
      await expect(openDataFolder(join(dir, 'file', 'data'))).rejects.toMatchObject({
        code: 'data-unwritable',
        message: expect.stringContaining('--data'),
      });
    }));
});

const modeOf = async (...path: readonly string[]): Promise<number> => (await stat(join(...path))).mode & 0o7777;

describe('a data folder that others could read', () => {
  test('is closed with all of our files; foreign files keep their modes', () =>
    withTemporaryFolder(async (dir) => {
      await openDataFolder(dir);
      for (const folder of ['golden', 'remote/0123/journal', 'run', 'photos'])
        await mkdir(join(dir, folder), { recursive: true });
      const files = [
        'golden/000004.log',
        'remote/0123/journal/000001-00000000-1.wal',
        'node.json.1',
        'photos/cat',
        'notes.txt',
      ];
      for (const file of files) await writeFile(join(dir, file), 'x');
      await symlink(join(dir, 'notes.txt'), join(dir, 'golden', 'link'));
      for (const folder of ['.', 'golden', 'remote', 'remote/0123', 'remote/0123/journal', 'run', 'photos']) {
        await chmod(join(dir, folder), 0o755);
      }
      for (const file of ['palimpsest.json', ...files])
        await chmod(join(dir, file), file === 'node.json.1' ? 0o666 : 0o644);
      await openDataFolder(dir);
      for (const folder of ['.', 'golden', 'remote', 'remote/0123', 'remote/0123/journal', 'run', 'users', 'logs']) {
        expect([folder, await modeOf(dir, folder)]).toEqual([folder, 0o700]);
      }
      for (const file of ['palimpsest.json', ...files.slice(0, 3)])
        expect([file, await modeOf(dir, file)]).toEqual([file, 0o600]);
      expect([await modeOf(dir, 'photos'), await modeOf(dir, 'photos/cat'), await modeOf(dir, 'notes.txt')]).toEqual([
        0o755, 0o644, 0o644,
      ]);
    }));

  test('is closed before the first file is written, with any umask', () =>
    withTemporaryFolder(async (dir) => {
      const before = process.umask(0);
      try {
        await chmod(dir, 0o777);
        await openDataFolder(dir);
        expect([await modeOf(dir), await modeOf(dir, 'users'), await modeOf(dir, 'palimpsest.json')]).toEqual([
          0o700, 0o700, 0o600,
        ]);
      } finally {
        process.umask(before);
      }
    }));

  test('is refused and not changed if it holds other things, like a shared folder', () =>
    withTemporaryFolder(async (dir) => {
      await writeFile(join(dir, 'notes.txt'), 'x');
      await chmod(dir, 0o755);
      const refused = {
        code: 'data-unwritable',
        message: expect.stringMatching(/open to other users.*"notes.txt".*chmod 700/),
      };
      await expect(openDataFolder(dir)).rejects.toMatchObject(refused);
      await expect(protectDataFolder(dir)).rejects.toMatchObject(refused);
      await writeFile(join(dir, 'palimpsest.json'), '{"format":1}');
      await chmod(dir, 0o1777);
      await expect(openDataFolder(dir)).rejects.toMatchObject(refused);
      expect(await modeOf(dir)).toBe(0o1777);
      await chmod(dir, 0o755);
      await openDataFolder(dir);
      expect(await modeOf(dir)).toBe(0o700);
    }));

  test('is skipped if it does not exist or is a file', () =>
    withTemporaryFolder(async (dir) => {
      await protectDataFolder(join(dir, 'none'));
      await writeFile(join(dir, 'file'), 'x');
      await protectDataFolder(join(dir, 'file'));
      expect((await stat(join(dir, 'file'))).isFile()).toBe(true);
    }));

  // Only an administrator can give a file away.
  (process.geteuid?.() === 0 ? test : test.skip)(
    'and belongs to another user, or an entry of which does, is refused',
    () =>
      withTemporaryFolder(async (dir) => {
        await mkdir(join(dir, 'data'));
        await openDataFolder(join(dir, 'data'));
        await writeFile(join(dir, 'data', 'node.json'), '{}');
        await chown(join(dir, 'data', 'node.json'), 1234, 1234);
        const another = {
          code: 'data-unwritable',
          message: expect.stringMatching(/node\.json, in the data folder .* belongs to another user/),
        };
        await expect(openDataFolder(join(dir, 'data'))).rejects.toMatchObject(another);
        await chown(join(dir, 'data', 'node.json'), 0, 0);
        await chown(join(dir, 'data'), 1234, 1234);
        for (const open of [openDataFolder, protectDataFolder]) {
          await expect(open(join(dir, 'data'))).rejects.toMatchObject({
            code: 'data-unwritable',
            message: expect.stringMatching(/^The data folder .* belongs to another user/),
          });
        }
      }),
  );
});

const roots = { runtimeDir: '/run/user/1000', tmpDir: '/tmp', user: '1000' };
const long = `/home/someone/${'x'.repeat(90)}`;

describe('the place of the socket', () => {
  test('is the data folder if its path is short', () => {
    expect(runtimeFolderFor('/home/someone/data', roots)).toBe('/home/someone/data/run');
  });
  test('is otherwise the XDG runtime folder or the temporary one, always with a short path', () => {
    const own = runtimeFolderFor(long, roots);
    expect(own).toMatch(/^\/run\/user\/1000\/palimpsest\/[0-9a-f]{16}$/);
    const shared = runtimeFolderFor(long, { ...roots, runtimeDir: undefined });
    expect(shared).toMatch(/^\/tmp\/palimpsest-1000-[0-9a-f]{16}$/);
    expect(runtimeFolderFor(long, { ...roots, runtimeDir: `/run/${'y'.repeat(90)}` })).toBe(shared);
    expect(Buffer.byteLength(socketIn(own))).toBeLessThanOrEqual(MAX_SOCKET_PATH_BYTES);
  });
  test('differs for long data folders', () => {
    expect(runtimeFolderFor(`${long}1`, roots)).not.toBe(runtimeFolderFor(`${long}2`, roots));
  });
  test('depends on lengths in bytes, not characters', () => {
    expect(runtimeFolderFor(`/home/${'ä'.repeat(45)}`, roots)).toMatch(/^\/run\/user/);
  });
  test('is refused in a folder open to others', () =>
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

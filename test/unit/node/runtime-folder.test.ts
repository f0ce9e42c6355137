import { chmod, mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { MAX_SOCKET_PATH_BYTES, makeRuntimeFolder, runtimeFolderFor, socketIn } from '../../../src/node/runtime-folder.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

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

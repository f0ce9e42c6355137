import { mkdir, statfs, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { diskRoom } from '../../../src/node/data-folder.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const MIB = 2 ** 20;

test('requires room for the logs of both stores and for the start itself', () =>
  withTemporaryFolder(async (dir) => {
    for (const [folder, name, size] of [
      ['golden', '000004.log', 48 * MIB],
      ['index', '000012.log', 3 * MIB],
      ['index', '000013.sst', 90 * MIB],
    ] as const) {
      await mkdir(join(dir, folder), { recursive: true });
      await writeFile(join(dir, folder, name), '');
      await truncate(join(dir, folder, name), size);
    }
    const { bavail, bsize } = await statfs(dir);
    const room = await diskRoom(dir);
    expect(room).toMatchObject({ least: 67 * MIB, suffices: bavail * bsize >= 67 * MIB });
    expect(room.free).toBeGreaterThan(0);
    // A log that no disk here could rewrite.
    await truncate(join(dir, 'golden', '000004.log'), 2 ** 43);
    expect(await diskRoom(dir)).toMatchObject({ least: 2 ** 43 + 19 * MIB, suffices: false });
  }));

test('requires the minimum for a missing folder, whose disk is unknown', () =>
  withTemporaryFolder(async (dir) => {
    expect(await diskRoom(join(dir, 'none'))).toEqual({ free: undefined, least: 16 * MIB, suffices: true });
  }));

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { diskPlaces } from '../../../src/erasure/disk-places.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

test('the use of a disk has its own place for the temporary files of a node', () =>
  withTemporaryFolder(async (folder) => {
    for (const [path, bytes] of [
      ['data/golden/1.sst', 300],
      ['data/tmp/xtdb_rocksdb-6/librocksdbjni.so', 200],
      ['data/own-sessions.json', 100],
    ] as const) {
      await mkdir(join(folder, path, '..'), { recursive: true });
      await writeFile(join(folder, path), 'x'.repeat(bytes));
    }
    const places = await diskPlaces({ dataDir: join(folder, 'data'), cacheDir: join(folder, 'cache') });
    expect(places.map(({ name, bytes }) => [name, bytes])).toEqual([
      ['database', 300],
      ["node's temporary files", 200],
      ['lists and reports', 100],
    ]);
  }));

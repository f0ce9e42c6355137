import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ensureNode } from '../../../src/node/ensure-node.js';
import { nodeStatus } from '../../../src/node/node-status.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { canMount, mountSmall } from '../../support/disk-tricks.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';

let dataDir: string;
beforeAll(async () => {
  // A realistic path: spaces, letters beyond ASCII, and characters with a meaning in addresses.
  dataDir = await mkdtemp(join(tmpdir(), 'palimpsest dürable % #1 '));
});
afterAll(async () => {
  await stopNode(dataDir);
  await rm(dataDir, { recursive: true, force: true });
});

describe('a durable node', () => {
  test('keeps its stores in the data folder, and a wait for it can be aborted', async () => {
    const abort = new AbortController();
    const given = ensureNode({ dataDir, profile: 'rocksdb', signal: abort.signal });
    abort.abort();
    await expect(given).rejects.toMatchObject({ code: 'aborted' });
    const node = await ensureNode({ dataDir, profile: 'rocksdb', onExit: 'stop-last' });
    expect(node).toMatchObject({ profile: 'rocksdb', version: '1.24.3' });
    await node.release();
    expect(await readdir(dataDir)).toEqual(expect.arrayContaining(['golden', 'index']));
  });

  test('does not start with a damaged store, reports that, and remembers it', async () => {
    await truncate(join(dataDir, 'golden', 'CURRENT'), 3);
    const failing = ensureNode({ dataDir, profile: 'rocksdb' });
    await expect(failing).rejects.toMatchObject({ code: 'data-corrupt', message: expect.stringContaining('backup') });
    expect(await nodeStatus(dataDir)).toMatchObject({ running: false, failure: { code: 'data-corrupt' } });
  });

  // Only an administrator can make a small disk. Elsewhere, another test covers the handling of the
  // error.
  (canMount() ? test : test.skip)('on a full disk it does not start and says so', () =>
    withTemporaryFolder(async (dir) => {
      mountSmall(dir, '1m');
      try {
        await expect(ensureNode({ dataDir: dir, profile: 'rocksdb' })).rejects.toMatchObject({ code: 'no-space' });
        expect(await nodeStatus(dir)).toMatchObject({ running: false });
      } finally {
        // Does not detach the disk lazily: no process of the ended node may still use it.
        await until(
          () => spawnSync('umount', [dir], { encoding: 'utf8' }),
          ({ status }) => status === 0,
        );
      }
    }),
  );
});

import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createContextClient } from '../../../src/host/open-client.js';
import { nodeStatus } from '../../../src/node/node-status.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { canMount, mountSmall, unmount } from '../../support/disk-tricks.js';
import { callReport } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';

let folder: string;
let dataDir: string;
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-dead-')));
  dataDir = join(folder, 'data');
  await mkdir(dataDir);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

(canMount() ? test : test.skip)(
  'an indexer that died on a full disk is started again when there is room, and what was acknowledged meanwhile is delivered',
  async () => {
    mountSmall(dataDir, '120m');
    // The journal lies where there is room: only the database stands on the full disk.
    await mkdir(join(dataDir, 'journal'));
    mountSmall(join(dataDir, 'journal'), '80m');
    try {
      const harness = await createContextClient({ dataDir, roots: [folder], cwd: folder, track: false });
      const { client } = harness;
      const session = await client.openSession();
      const { applied } = await session.recordCall(callReport({ tool: 'bash', content: 'before' }));
      await applied;
      const before = await nodeStatus(dataDir);
      const filler = join(dataDir, 'filler');
      await writeFile(filler, Buffer.alloc(120_000_000)).catch(() => undefined);
      const dead = async () => {
        await session.recordCall(callReport({ tool: 'bash', content: Array.from({ length: 20_000 }, () => Math.random()).join() }));
        const status = await nodeStatus(dataDir);
        return status.running && (status.ingesterFailed || status.phase !== 'ready');
      };
      await until(dead, (isDead) => isDead);
      await rm(filler);
      await until(
        () => nodeStatus(dataDir),
        (now) => now.running && before.running && now.restarts > before.restarts && now.answers && !now.ingesterFailed,
      );
      await client.backpressure(0, 120_000);
      const after = await session.recordCall(callReport({ tool: 'bash', content: 'after' }));
      await after.applied;
      expect((await (await client.snapshot()).steps(session.id)).length).toBe(session.state.seq);
      expect(await harness.close()).toEqual({ unflushed: 0 });
    } finally {
      await stopNode(dataDir);
      unmount(join(dataDir, 'journal'));
      unmount(dataDir);
    }
  },
);

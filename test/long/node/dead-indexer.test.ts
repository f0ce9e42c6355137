import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createContextClient } from '../../../src/harness/create-client.js';
import { openDataFolder } from '../../../src/node/data-folder.js';
import { type NodeStatusReport, nodeStatus } from '../../../src/node/node-status.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { canMount, mountSmall, unmount } from '../../support/disk-tricks.js';
import { runCli } from '../../support/run-cli.js';
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

const running = (status: NodeStatusReport) => {
  if (!status.running) throw new Error('no node runs');
  return status;
};

/**
 * The folder on the full disk, the status after its first failure, and a description of that
 * failure.
 */
const DISKS = [
  {
    full: '',
    failed: /ACCEPTS NO MORE WRITES|HAS STOPPED INDEXING/,
    what: 'a store that refuses writes on a full disk',
  },
  { full: 'index', failed: /HAS STOPPED INDEXING/, what: 'an indexer that died on a full disk' },
];

(canMount() ? test : test.skip).each(DISKS)(
  '$what restarts once there is room, and acknowledged steps are delivered',
  async ({ full, failed }) => {
    const disk = join(dataDir, full);
    if (full !== '') {
      await openDataFolder(dataDir);
      await mkdir(disk);
    }
    mountSmall(disk, '240m');
    // The journal is on another disk. Only the database is on the full one.
    await mkdir(join(dataDir, 'journal'));
    mountSmall(join(dataDir, 'journal'), '80m');
    const harness = await createContextClient({ dataDir, roots: [folder], cwd: folder, track: false });
    try {
      const { client } = harness;
      const session = await client.openSession();
      const report = (content: string) => session.recordCall(callReport({ tool: 'bash', content }));
      await (await report('before')).applied;
      const before = running(await nodeStatus(dataDir));
      const filler = join(disk, 'filler');
      await writeFile(filler, Buffer.alloc(240_000_000)).catch(() => undefined);
      const broken = await until(
        async () => {
          if (client.status.outage === undefined) await report(randomBytes(100_000).toString('base64'));
          return running(await nodeStatus(dataDir));
        },
        (now) => now.storeFailed || now.ingesterFailed,
      );
      expect(broken).toMatchObject({ pid: before.pid, restarts: 0, isDiskFull: true, answers: true });
      for (let i = 0; i < 5; i++) await report(`meanwhile ${i}`);
      const [status, doctor] = await Promise.all(
        [['node', 'status'], ['doctor']].map((command) => runCli([...command, '--data', dataDir])),
      );
      expect([status?.code, doctor?.code]).toEqual([3, 1]);
      for (const said of [status?.stdout, doctor?.stdout]) expect(said).toMatch(failed);
      for (const said of [status?.stdout, doctor?.stdout])
        expect(said).toContain(`Free at least ${Math.ceil(broken.leastRoom / 2 ** 20)} MiB on the disk of ${dataDir}`);
      await rm(filler);
      const mended = await until(
        async () => running(await nodeStatus(dataDir)),
        (now) => now.restarts > 0 && now.answers,
      );
      expect(mended).toMatchObject({ phase: 'ready', ingesterFailed: false, storeFailed: false });
      await client.backpressure(0, 120_000);
      await (await report('after')).applied;
      expect((await (await client.snapshot()).steps(session.id)).length).toBe(session.state.seq);
      expect(await harness.close()).toEqual({ unflushed: 0 });
    } finally {
      // Otherwise it would start a node again.
      await harness.close();
      await stopNode(dataDir);
      unmount(join(dataDir, 'journal'));
      unmount(disk);
    }
  },
);

import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { ensureNode } from '../../../src/node/ensure-node.js';
import { nodeStatus } from '../../../src/node/node-status.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { sessionId } from '../../../src/objects/ids.js';
import { openClient } from '../../support/context.js';
import { canMount, mountSmall, unmount } from '../../support/disk-tricks.js';
import { Road } from '../../support/road.js';
import { callReport } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';

let folder: string;
let dataDir: string;
const clients: ContextClient[] = [];
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-rescue-')));
  dataDir = join(folder, 'data');
  await mkdir(dataDir);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

(canMount() ? test : test.skip)(
  'the fork of a session that was taken over is made when the disk of the node has room again',
  async () => {
    mountSmall(dataDir, '240m');
    const node = await ensureNode({ dataDir, profile: 'rocksdb' });
    const road = new Road(folder, node.address);
    const open = async (options: Parameters<typeof openClient>[1]) => {
      const client = await openClient(folder, { track: false, ...options });
      clients.push(client);
      return client;
    };
    try {
      await road.open();
      const client = await open({ address: road.address, dataDir: join(folder, 'journals') });
      const session = await client.openSession();
      await (await session.recordCall(callReport({ content: 'one' }))).applied;
      await road.close();
      const applied: Promise<unknown>[] = [];
      for (const content of ['two', 'three']) applied.push((await session.recordCall(callReport({ content }))).applied);
      for (const one of applied) one.catch(() => undefined);
      const elsewhere = await open({ address: node.address });
      await (await (await elsewhere.openSession({ id: session.id })).recordCall(callReport({ content: 'another two' })))
        .applied;

      const filler = join(dataDir, 'filler');
      await writeFile(filler, Buffer.alloc(240_000_000)).catch(() => undefined);
      const other = await open({ address: node.address, dataDir: join(folder, 'others') });
      const filling = await other.openSession();
      await until(
        async () => {
          if (other.status.outage === undefined)
            await filling.recordCall(callReport({ content: randomBytes(100_000).toString('base64') }));
          return nodeStatus(dataDir);
        },
        (now) => now.running && (now.storeFailed || now.ingesterFailed),
      );
      await road.open();
      await until(
        () => session.isLost && client.status.outage !== undefined,
        (isStuck) => isStuck,
      );
      expect(client.status.waiting).toBe(2);
      await expect(session.recordCall(callReport({ content: 'too late' }))).rejects.toMatchObject({
        code: 'taken-over',
      });

      await rm(filler);
      for (const one of applied)
        await expect(one).rejects.toMatchObject({
          code: 'taken-over',
          message: expect.stringContaining(`${session.id}.fork-1-2`),
        });
      const steps = await (await elsewhere.store.latest()).steps(sessionId(`${session.id}.fork-1-2`));
      expect(steps.map(({ seq }) => seq)).toEqual([1, 2, 3]);
      expect(await client.close()).toEqual({ unflushed: 0 });
    } finally {
      await Promise.all(clients.splice(0).map((client) => client.close()));
      await road.close();
      await node.release();
      await stopNode(dataDir);
      unmount(dataDir);
    }
  },
);

import { setTimeout as delay } from 'node:timers/promises';
import { ContextClient } from '../../src/client/session/context-client.js';
import { NodeUse } from '../../src/host/open-store.js';
import type { WorkloadPlan } from './workload-plan.js';

/** Milliseconds between two searches for the journals of dead processes. */
const PAUSE_MS = 20;

/**
 * Delivers the journals of dead processes in a data folder until it is killed. The driver of a run
 * sometimes kills it in the middle.
 */
const plan = JSON.parse(process.argv[2] ?? '{}') as WorkloadPlan;
const node = new NodeUse(
  { dataDir: plan.dataDir, profile: 'rocksdb', idleExitSeconds: 600 },
  { nodeUrl: undefined, nodeToken: undefined },
);
const client = await ContextClient.create({
  address: () => node.address(),
  roots: [plan.root],
  cwd: plan.root,
  filesystemId: plan.filesystemId,
  dataDir: plan.dataDir,
  track: false,
  what: 'chaos deliverer',
});
process.stdout.write('open\n');
for (;;) {
  // Nothing can be delivered while the node is away, so it tries again.
  await client.delivered({ others: false }).catch(() => undefined);
  await delay(PAUSE_MS);
}

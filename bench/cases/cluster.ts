import { measureCalls } from '../cluster/calls.js';
import { measureCatchingUp } from '../cluster/catching-up.js';
import { measureReads } from '../cluster/reads.js';
import { ClusterServers } from '../cluster/servers.js';
import { measureStored } from '../cluster/stored.js';
import type { CaseResult } from '../results.js';
import type { Workshop } from '../workshop.js';

/**
 * Compares several nodes over one log with one embedded node, on the same machine as a real
 * PostgreSQL and a real Kafka broker. Measures calls, storage, catching up, and the reads of eight
 * clients from one, two and four nodes.
 */
export async function measureCluster(workshop: Workshop): Promise<CaseResult> {
  const servers = await ClusterServers.open(workshop);
  try {
    const calls = await measureCalls(workshop, servers);
    const stored = await measureStored(workshop, servers);
    const { result: caught, ...nodes } = await measureCatchingUp(workshop, servers);
    const reads = await measureReads(workshop, nodes);
    const all = [calls, stored, caught, reads];
    return { cases: all.flatMap(({ cases }) => cases), goals: all.flatMap(({ goals }) => goals) };
  } finally {
    await servers.close();
  }
}

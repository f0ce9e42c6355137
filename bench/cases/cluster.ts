import { measureCalls } from '../cluster/calls.js';
import { measureCatchingUp } from '../cluster/catching-up.js';
import { measureReads } from '../cluster/reads.js';
import { ClusterServers } from '../cluster/servers.js';
import { measureStored } from '../cluster/stored.js';
import type { CaseResult } from '../results.js';
import type { Workshop } from '../workshop.js';

/**
 * Several nodes over one log, beside one embedded node, with a real PostgreSQL and a real broker of Kafka on the same machine: calls, storage, catching up, and what eight clients
 * read from one, two and four of them.
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

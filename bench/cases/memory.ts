import { nodeStatus } from '../../src/index.js';
import { makeProject, settleDisk } from '../fixtures.js';
import type { CaseResult } from '../results.js';
import { script } from '../script.js';
import { residentMiB } from '../stdio-server.js';
import type { Workshop } from '../workshop.js';

/** The goal for our server, 120 MB, in MiB. */
const OWN_MIB = 120e6 / 1_048_576;

/**
 * Measures the resident memory of our server and of the node's JVM after a scripted session over
 * MCP. The session has no messages, because MCP does not report them.
 */
export async function measureMemory(workshop: Workshop): Promise<CaseResult> {
  const { sessionCalls } = workshop.sizes;
  workshop.tell(`memory after ${sessionCalls} calls`);
  const folders = await makeProject(`${workshop.files}/remembered`);
  settleDisk();
  const dataDir = workshop.dataDir('memory-data');
  const server = workshop.ours(dataDir, 'bench-memory');
  await server.initialize();
  const began = performance.now();
  for (const action of script(folders, sessionCalls))
    if (action.kind === 'call') await server.call(action.tool, action.args, `turn-${action.turn}`);
  const took = performance.now() - began;
  const status = await nodeStatus(dataDir);
  const jvm = status.running && status.pid !== null ? residentMiB(status.pid) : undefined;
  const own = residentMiB(server.pid);
  await server.close();
  const rows = [
    { name: 'palimpsest mcp', value: own ?? Number.NaN, unit: 'MiB' },
    { name: 'JVM of the node, rocksdb profile', value: jvm ?? Number.NaN, unit: 'MiB' },
    { name: 'mean time of a call, start of the node included', value: took / sessionCalls, unit: 'ms' },
  ];
  return {
    cases: [{ kind: 'counted', title: `Resident memory after a session of ${sessionCalls} calls over MCP`, rows }],
    goals: [
      { what: 'resident memory of palimpsest mcp', measured: own ?? Number.NaN, bar: OWN_MIB, unit: 'MiB' },
      { what: 'resident memory of the JVM', measured: jvm ?? Number.NaN, bar: 600, unit: 'MiB' },
    ],
  };
}

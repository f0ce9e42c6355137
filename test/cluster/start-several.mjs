import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { bundle, projectRoot } from '../../scripts/bundle.mjs';
import startServers from './start-servers.mjs';
import stopServers from './stop-servers.mjs';

let several;

/**
 * Starts two nodes over one log, for suites that were written for one node. Either node answers
 * each request of a suite or its processes. The log is in PostgreSQL, or in Kafka if
 * PALIMPSEST_TEST_LOG is `kafka`.
 *
 * PALIMPSEST_TEST_NODES and XTDB_URL show clients that there are several nodes.
 */
export default async function startSeveral() {
  await startServers();
  const programs = await mkdtemp(join(projectRoot, 'node_modules', '.several-'));
  try {
    await bundle({ entryPoints: { nodes: 'test/cluster/several-nodes.ts' }, outdir: programs });
    const { severalNodes } = await import(join(programs, 'nodes.js'));
    several = await severalNodes(process.env.PALIMPSEST_TEST_LOG === 'kafka' ? 'kafka' : 'postgres');
  } finally {
    await rm(programs, { recursive: true, force: true });
  }
  await mkdir(several.dataDir);
  process.env.PALIMPSEST_TEST_NODES = 'several';
  process.env.PALIMPSEST_TEST_SOCKET = several.socketPath;
  process.env.PALIMPSEST_TEST_DATA = several.dataDir;
  process.env.XTDB_URL = several.url;
}

/** Ends the nodes, and prints how many requests each has answered. */
export async function stopSeveral() {
  if (several !== undefined) process.stderr.write(`requests that each node answered: ${several.counts.join(', ')}\n`);
  await several?.close();
  await stopServers();
}

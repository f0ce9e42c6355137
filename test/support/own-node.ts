import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureNode } from '../../src/node/ensure-node.js';
import type { NodeProfile } from '../../src/node/node-state.js';
import { stopNode } from '../../src/node/stop-node.js';
import type { NodeAddress } from '../../src/xtdb/address.js';

/** A node for one suite, with its own data folder. */
export interface OwnNode {
  readonly address: NodeAddress;
  readonly dataDir: string;
  /** Stops it and removes its data folder. */
  stop(): Promise<void>;
}

/**
 * Starts a node for a suite that counts or lists the whole database, or stops the node. It costs a
 * JVM. A suite with unique ids uses the shared node.
 */
export async function ownNode(profile: NodeProfile = 'memory'): Promise<OwnNode> {
  const dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-own-'));
  const { address, release } = await ensureNode({ dataDir, profile });
  return {
    address,
    dataDir,
    stop: async () => {
      await release();
      await stopNode(dataDir);
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

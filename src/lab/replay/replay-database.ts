import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EnsureNodeOptions, ensureNode } from '../../node/ensure-node.js';
import { stopNode } from '../../node/stop-node.js';
import type { NodeAddress } from '../../xtdb/address.js';

/** An isolated database of replays [§6.3]. */
export interface ReplayDatabase {
  readonly address: NodeAddress | (() => Promise<NodeAddress>);
  /** Present where what is replayed stays: a replay that was interrupted goes on there. */
  readonly dataDir: string | undefined;
  /** Idempotent; a database of its own is gone then. */
  close(): Promise<void>;
}

export type NodeSettings = Partial<Omit<EnsureNodeOptions, 'dataDir'>>;

/** A data folder that keeps what is replayed into it. */
async function keptDatabase(dataDir: string, node: NodeSettings): Promise<ReplayDatabase> {
  const handle = await ensureNode({ profile: 'rocksdb', ...node, dataDir });
  return { address: handle.address, dataDir, close: () => handle.release() };
}

/** An in-memory node in a temporary folder. */
async function ownDatabase(node: NodeSettings): Promise<ReplayDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'palimpsest-replay-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const handle = await ensureNode({ idleExitSeconds: 3_600, ...node, profile: 'memory', dataDir: folder });
    let closing: Promise<void> | undefined;
    const end = async (): Promise<void> => {
      await handle.release();
      await stopNode(folder);
      await remove();
    };
    return {
      address: handle.address,
      dataDir: undefined,
      close: () => {
        closing ??= end();
        return closing;
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Opens the database of a replay: the data folder's, or an in-memory node of its own that is gone afterwards.
 *
 * @throws {NodeError} – when the node cannot be started
 */
export function openReplayDatabase(dataDir: string | undefined, node: NodeSettings = {}): Promise<ReplayDatabase> {
  return dataDir === undefined ? ownDatabase(node) : keptDatabase(dataDir, node);
}

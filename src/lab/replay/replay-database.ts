import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MaskLoader } from '../../client/record-mask.js';
import { type EnsureNodeOptions, ensureNode } from '../../node/ensure-node.js';
import { stopNode } from '../../node/stop-node.js';
import type { NodeAddress } from '../../xtdb/address.js';

/** An isolated database for replays [§6.3]. */
export interface ReplayDatabase {
  readonly address: NodeAddress | (() => Promise<NodeAddress>);
  /**
   * The folder of a persistent database; undefined for a temporary one. An interrupted replay
   * resumes there.
   */
  readonly dataDir: string | undefined;
  /** Loads the mask for secrets. Without it, recordings are replayed unmasked. */
  readonly mask?: MaskLoader;
  /** Closes the database and deletes a temporary one. Idempotent. */
  close(): Promise<void>;
}

type NodeSettings = Partial<Omit<EnsureNodeOptions, 'dataDir'>>;

/**
 * Opens a database for replays: the data folder's, or an in-memory one whose temporary folder is
 * deleted on close.
 *
 * @throws {NodeError} – the node cannot be started
 */
export async function openReplayDatabase(
  dataDir: string | undefined,
  node: NodeSettings = {},
): Promise<ReplayDatabase> {
  if (dataDir !== undefined) {
    const { address, release } = await ensureNode({ profile: 'rocksdb', ...node, dataDir });
    return { address, dataDir, close: release };
  }
  const folder = await mkdtemp(join(tmpdir(), 'palimpsest-replay-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const handle = await ensureNode({ idleExitSeconds: 3_600, ...node, profile: 'memory', dataDir: folder });
    let closing: Promise<void> | undefined;
    const close = (): Promise<void> => {
      closing ??= handle
        .release()
        .then(() => stopNode(folder))
        .then(remove);
      return closing;
    };
    return { address: handle.address, dataDir, close };
  } catch (error) {
    await remove();
    throw error;
  }
}

import { ContextClient, type ContextClientOptions } from '../client/session/context-client.js';
import { localFilesystemId } from '../filesystem/access/filesystem-id.js';
import { type EnsureNodeOptions, ensureNode, type NodeHandle } from '../node/ensure-node.js';
import type { NodeAddress } from '../xtdb/address.js';
import { HarnessClient } from './harness-client.js';
import type { HarnessSettings } from './harness-session.js';

/** How a client is made by `createContextClient`. */
export interface CreateClientOptions
  extends Omit<ContextClientOptions, 'address' | 'dataDir' | 'filesystemId'>,
    Pick<HarnessSettings, 'mineShell'> {
  /** The data folder: journal and leases of this client and, unless an address is given, the node's data. */
  readonly dataDir: string;
  /** Where a node listens that is there already; otherwise the node of the data folder is found or started. */
  readonly address?: ContextClientOptions['address'];
  /** Identity of the filesystem that this process sees [§5.4]; the machine's own where absent. */
  readonly filesystemId?: ContextClientOptions['filesystemId'];
  /** How the node is started; its data lies on disk unless told otherwise. */
  readonly node?: Partial<Omit<EnsureNodeOptions, 'dataDir'>>;
}

/** The node of a data folder: asked for at the first request, and again whenever it cannot be reached. */
class OwnNode {
  readonly #options: EnsureNodeOptions;
  readonly #stop = new AbortController();
  #handle: NodeHandle | undefined;

  constructor(options: EnsureNodeOptions) {
    this.#options = options;
  }

  async address(): Promise<NodeAddress> {
    const { signal } = this.#options;
    const both = signal === undefined ? this.#stop.signal : AbortSignal.any([signal, this.#stop.signal]);
    const before = this.#handle;
    this.#handle = await ensureNode({ ...this.#options, signal: both });
    await before?.release();
    return this.#handle.address;
  }

  async release(): Promise<void> {
    this.#stop.abort();
    await this.#handle?.release();
  }
}

/**
 * Makes a client for a harness that runs in this process: opens the roots and, unless an address is given, finds or starts the node of the data folder.
 * Resolves without waiting for the node; the first session does. Throws SourceError for roots that do not exist. Whoever makes it closes it.
 */
export async function createContextClient(options: CreateClientOptions): Promise<HarnessClient> {
  const { dataDir, address, filesystemId, node, mineShell = false, ...others } = options;
  const own = new OwnNode({ profile: 'rocksdb', ...node, dataDir });
  const client = await ContextClient.create({
    ...others,
    dataDir,
    address: address ?? (() => own.address()),
    filesystemId: filesystemId ?? (await localFilesystemId(dataDir)),
  });
  const { strict = false, shortIds = false } = options;
  return new HarnessClient(client, { mineShell, strict, shortIds }, () => own.release());
}

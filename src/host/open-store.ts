import { clientStore } from '../client/session/client-store.js';
import { requireLogFormat } from '../node/data-folder.js';
import { type EnsureNodeOptions, ensureNode, type NodeHandle } from '../node/ensure-node.js';
import { clientFolder } from '../process/data-folder.js';
import type { ObjectStore } from '../store/object-store.js';
import { NO_TELEMETRY, type Telemetry } from '../telemetry/telemetry.js';
import { defined } from '../values/defined.js';
import { describeAddress, isListed, type NodeAddress, parseNodeUrls } from '../xtdb/address.js';
import { NodeList } from '../xtdb/node-list.js';
import type { TransactionLog } from '../xtdb/tx-log.js';
import { XtdbClient } from '../xtdb/xtdb-client.js';
import type { Settings } from './settings.js';

/**
 * Access to a database node: a remote one, or that of the data folder. The data folder's node is
 * found or started when its address is first requested.
 */
export class NodeUse {
  readonly #options: EnsureNodeOptions;
  readonly #stop = new AbortController();
  readonly #nodes: NodeList | undefined;
  readonly #telemetry: Telemetry;
  #handle: NodeHandle | undefined;

  constructor(options: EnsureNodeOptions, remote?: Pick<Settings, 'nodeUrl' | 'nodeToken'>, telemetry = NO_TELEMETRY) {
    this.#options = options;
    this.#telemetry = telemetry;
    const { nodeUrl, nodeToken } = remote ?? {};
    if (nodeUrl === undefined) return;
    this.#nodes = new NodeList(
      () => parseNodeUrls(nodeUrl).map((address) => ({ ...address, ...defined({ token: nodeToken?.() }) })),
      ({ address, status }) => requireLogFormat(status?.log?.format, describeAddress(address)),
    );
  }

  /**
   * Returns the node's address. Called at the first request, and again whenever the node is
   * unreachable.
   */
  async address(): Promise<NodeAddress> {
    if (this.#nodes !== undefined) return this.#nodes.choose();
    const { signal } = this.#options;
    const both = signal === undefined ? this.#stop.signal : AbortSignal.any([signal, this.#stop.signal]);
    const before = this.#handle;
    const facts = defined({ 'palimpsest.node.profile': this.#options.profile });
    this.#handle = await this.#telemetry.observe({ activity: 'node start', facts }, () =>
      ensureNode({ ...this.#options, signal: both }),
    );
    await before?.release();
    return this.#handle.address;
  }

  /** Releases the node, even while it starts. */
  async release(): Promise<void> {
    this.#stop.abort();
    await this.#handle?.release();
  }
}

/** A database for reading, with a function that releases it. */
export interface OpenStore {
  readonly store: ObjectStore;
  /** The log of every transaction, for a reader that must see all versions. */
  readonly log: TransactionLog;
  close(): Promise<void>;
}

/**
 * Opens the settings' database for reading. Finds or starts the node first.
 * @throws {NodeError} every code – the node cannot be started
 */
export async function openStore(settings: Settings, onProgress: (message: string) => void): Promise<OpenStore> {
  const use = new NodeUse({ ...settings.node, onProgress }, settings);
  const first = await use.address();
  // With several nodes, a different one may answer later. The address of our own node is requested
  // once.
  const xtdb = new XtdbClient(isListed(first) ? () => use.address() : first);
  const close = async (): Promise<void> => {
    await xtdb.close();
    await use.release();
  };
  const dataDir = clientFolder(settings.node.dataDir, settings.nodeUrl);
  return { store: clientStore(xtdb, { dataDir }), log: xtdb.log, close };
}

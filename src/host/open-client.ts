import type { ContextClientOptions } from '../client/session/client-options.js';
import { ContextClient } from '../client/session/context-client.js';
import { localFilesystemId } from '../filesystem/access/filesystem-id.js';
import type { HarnessClient } from '../harness/harness-client.js';
import type { HarnessSettings } from '../harness/harness-session.js';
import { protectDataFolder } from '../node/data-folder.js';
import type { EnsureNodeOptions } from '../node/ensure-node.js';
import { clientFolder } from '../process/data-folder.js';
import { defined } from '../values/defined.js';
import type { MaskSetting } from './environment.js';
import { openMask } from './open-mask.js';
import { NodeUse } from './open-store.js';
import { isDurable, type Settings } from './settings.js';

/** A client, with a function that closes it and releases the node. */
export interface OpenClient {
  readonly client: ContextClient;
  close(): ReturnType<ContextClient['close']>;
}

/** How a process of this program opens its client, beyond the settings. */
export interface OpenClientOptions
  extends Omit<ContextClientOptions, 'address' | 'dataDir' | 'filesystemId' | 'journal' | 'mask' | 'shareSessions'>,
    Partial<Pick<EnsureNodeOptions, 'signal' | 'onProgress'>> {}

/**
 * Opens a client on the settings' database. Resolves without waiting for the node. Throws the
 * errors of `ContextClient.create`, and NodeError `data-unwritable`.
 */
export async function openClient(
  settings: Settings,
  { signal, onProgress, ...options }: OpenClientOptions,
): Promise<OpenClient> {
  const { node, nodeUrl, shareSessions, mask: setting } = settings;
  await protectDataFolder(node.dataDir);
  const mask = await openMask(node.dataDir, setting);
  const use = new NodeUse({ ...node, ...defined({ signal, onProgress }) }, settings, options.telemetry);
  const client = await ContextClient.create({
    ...options,
    shareSessions,
    address: () => use.address(),
    dataDir: clientFolder(node.dataDir, nodeUrl),
    filesystemId: await localFilesystemId(node.dataDir),
    journal: isDurable(settings),
    ...defined({ mask }),
  });
  return { client, close: () => client.close().finally(() => use.release()) };
}

/** Options of `createContextClient`. */
export interface CreateClientOptions
  extends Omit<ContextClientOptions, 'address' | 'dataDir' | 'filesystemId' | 'mask'>,
    Pick<HarnessSettings, 'mineShell'> {
  /** The data folder: this client's journal and leases and, without an address, the node's data. */
  readonly dataDir: string;
  /** The secrets to mask before anything is recorded. Default: known forms. */
  readonly mask?: MaskSetting;
  /** Address of a running node. Without it, the data folder's node is found or started. */
  readonly address?: ContextClientOptions['address'];
  /** Identity of the filesystem that this process sees [§5.4]; default: the machine's own. */
  readonly filesystemId?: ContextClientOptions['filesystemId'];
  /** How to start the node. By default its data is on disk. */
  readonly node?: Partial<Omit<EnsureNodeOptions, 'dataDir'>>;
}

/**
 * Creates a client for a harness that runs in this process. Opens the roots and, without an
 * address, finds or starts the data folder's node. Resolves without waiting for the node; the first
 * session waits. The caller closes it.
 * @throws {SourceError} not-found – a root does not exist
 * @throws {NodeError} data-unwritable – the data folder belongs to another user or cannot be made
 *   private
 *
 * @example
 * ```ts
 * const harness = await createContextClient({ dataDir: '.palimpsest', roots: ['.'], cwd: '.' });
 * const session = await harness.openSession();
 * await harness.close();
 * ```
 */
export async function createContextClient(options: CreateClientOptions): Promise<HarnessClient> {
  const { dataDir, address, filesystemId, node, mineShell = false, mask: setting, ...others } = options;
  // Servers and the sidecar open clients too, without the harness interface.
  const { HarnessClient } = await import('../harness/harness-client.js');
  await protectDataFolder(dataDir);
  const mask = await openMask(dataDir, setting);
  const use = new NodeUse({ ...node, dataDir });
  const client = await ContextClient.create({
    ...others,
    dataDir,
    ...defined({ mask }),
    address: address ?? (() => use.address()),
    filesystemId: filesystemId ?? (await localFilesystemId(dataDir)),
  });
  const { strict = false, shortIds = false } = options;
  return new HarnessClient(client, { mineShell, strict, shortIds }, () => use.release());
}

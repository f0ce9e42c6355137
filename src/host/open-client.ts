import type { ContextClientOptions } from '../client/session/client-options.js';
import { ContextClient } from '../client/session/context-client.js';
import { localFilesystemId } from '../filesystem/access/filesystem-id.js';
import { protectDataFolder } from '../node/data-folder.js';
import type { EnsureNodeOptions } from '../node/ensure-node.js';
import { clientFolder } from '../process/data-folder.js';
import { defined } from '../values/defined.js';
import type { NodeAddress } from '../xtdb/address.js';
import { openMask } from './open-mask.js';
import { NodeUse } from './open-store.js';
import { isDurable, type Settings } from './settings.js';

/** A client, with a function that closes it and releases the node. */
export interface OpenClient {
  readonly client: ContextClient;
  /** Finds the node, as the client does. */
  address(): Promise<NodeAddress>;
  close(): ReturnType<ContextClient['close']>;
}

/** Options of a process for opening its client, beyond the settings. */
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
  const { node, nodeUrl, shareSessions, mask: setting, maskAnswers } = settings;
  await protectDataFolder(node.dataDir);
  const mask = await openMask(node.dataDir, setting, maskAnswers);
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
  return { client, address: () => use.address(), close: () => client.close().finally(() => use.release()) };
}

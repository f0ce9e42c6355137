import type { ContextClientOptions } from '../client/session/client-options.js';
import { ContextClient } from '../client/session/context-client.js';
import { localFilesystemId } from '../filesystem/access/filesystem-id.js';
import type { MaskSetting } from '../host/environment.js';
import { openMask } from '../host/open-mask.js';
import { NodeUse } from '../host/open-store.js';
import { protectDataFolder } from '../node/data-folder.js';
import type { EnsureNodeOptions } from '../node/ensure-node.js';
import { defined } from '../values/defined.js';
import { HarnessClient } from './harness-client.js';
import type { HarnessSettings } from './harness-session.js';

/** Options of `createContextClient`. */
export interface CreateClientOptions
  extends Omit<ContextClientOptions, 'address' | 'dataDir' | 'filesystemId' | 'mask'>,
    Pick<HarnessSettings, 'mineShell'> {
  /**
   * The data folder. It contains this client's journal and lock files. Without `address`, it also
   * contains the node's data.
   */
  readonly dataDir: string;
  /**
   * Selects the secrets that are masked before anything is recorded. Default: secrets of known
   * forms.
   */
  readonly mask?: MaskSetting;
  /** Whether secrets are also masked in the answers that agents get. Default: false. */
  readonly maskAnswers?: boolean;
  /** Address of a running node. Without it, the client finds or starts the data folder's node. */
  readonly address?: ContextClientOptions['address'];
  /** Id of the filesystem that this process sees [§5.4]. Default: the machine's own id. */
  readonly filesystemId?: ContextClientOptions['filesystemId'];
  /** Options for starting the node. By default it stores its data on disk. */
  readonly node?: Partial<Omit<EnsureNodeOptions, 'dataDir'>>;
}

/**
 * Creates a client for a harness that runs in this process. It opens the roots. Without `address`,
 * it finds or starts the data folder's node. It returns before the node is ready; opening the first
 * session waits for the node. The caller must close the client.
 *
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
  const { dataDir, address, filesystemId, node, mineShell = false, mask: setting, maskAnswers, ...others } = options;
  await protectDataFolder(dataDir);
  const mask = await openMask(dataDir, setting, maskAnswers);
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

import type { RecordMask } from '../client/record-mask.js';
import type { ContextClientOptions } from '../client/session/client-options.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { MaskSetting } from '../host/environment.js';
import type { ObjectStore } from '../store/object-store.js';

/** The store that an import writes to, and how it shows progress. */
export interface ImportWork {
  readonly store: ObjectStore;
  readonly clientDir: string;
  /** Masks secrets. Missing with `--mask off`. */
  readonly mask?: RecordMask;
  readonly onProgress: (done: number, total: number) => void;
}

/** The flags that select the data folder and what is masked. */
type DataFlags = { readonly data?: string; readonly mask?: MaskSetting };

/** Opens the data folder's database for an import and shows the import's progress. */
export async function withImportStore<T>(flags: DataFlags, work: (of: ImportWork) => Promise<T>): Promise<T> {
  const [
    { openStore },
    { openMask },
    { readSettings },
    { clientFolder },
    { protectDataFolder },
    { runningProfile },
    { progressLine },
  ] = await Promise.all([
    import('../host/open-store.js'),
    import('../host/open-mask.js'),
    import('../host/settings.js'),
    import('../process/data-folder.js'),
    import('../node/data-folder.js'),
    import('../node/node-status.js'),
    import('./output.js'),
  ]);
  const { defined } = await import('../values/defined.js');
  const settings = readSettings(process.env, defined({ data: flags.data, mask: flags.mask }));
  const { dataDir } = settings.node;
  await protectDataFolder(dataDir);
  const mask = await openMask(dataDir, settings.mask);
  const profile = settings.nodeUrl === undefined ? await runningProfile(dataDir) : undefined;
  const line = progressLine();
  const { store, close } = await openStore(
    { ...settings, node: { ...settings.node, ...defined({ profile }) } },
    (said) => line.show(said),
  );
  try {
    return await work({
      store,
      clientDir: clientFolder(dataDir, settings.nodeUrl),
      ...defined({ mask }),
      onProgress: (done, total) => line.show(`${done} of ${total} transactions`),
    });
  } finally {
    line.end();
    await close();
  }
}

/** Opens a client of the data folder for an import. The client watches no files. */
export async function withImportClient<T>(
  flags: DataFlags,
  { roots, clock }: { readonly roots: readonly string[] | undefined } & Required<Pick<ContextClientOptions, 'clock'>>,
  work: (client: ContextClient) => Promise<T>,
): Promise<T> {
  const [{ readSettings }, { openClient }, { runningProfile }, { defined }] = await Promise.all([
    import('../host/settings.js'),
    import('../host/open-client.js'),
    import('../node/node-status.js'),
    import('../values/defined.js'),
  ]);
  const settings = readSettings(process.env, defined({ data: flags.data, mask: flags.mask }));
  const profile = settings.nodeUrl === undefined ? await runningProfile(settings.node.dataDir) : undefined;
  const cwd = process.cwd();
  const { client, close } = await openClient(
    { ...settings, node: { ...settings.node, ...defined({ profile }) } },
    { roots: roots ?? [cwd], cwd, track: false, what: 'palimpsest import', clock },
  );
  try {
    return await work(client);
  } finally {
    await close();
  }
}

import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isOwnEntry } from '../node/private-folder.js';
import { TIME_LIMITS } from '../node/time-limits.js';
import { bytesBelow } from '../process/bytes-below.js';

/** Files of one kind on the disk. */
export interface DiskPlace {
  readonly name: string;
  /** Absolute paths of files or folders. */
  readonly paths: readonly string[];
  readonly bytes: number;
  /** The limit on the growth of these files. */
  readonly bound: string;
  /** How a user can free the space. Undefined if Palimpsest frees it automatically. */
  readonly frees?: string;
}

const DATABASE = ['golden', 'index'];

/** The entries of a data folder by use. All other entries are small files of Palimpsest. */
const USES: readonly (Omit<DiskPlace, 'paths' | 'bytes'> & { readonly entries: readonly string[] })[] = [
  { name: 'database', entries: DATABASE, bound: 'none: content stays until palimpsest erase' },
  {
    name: 'search index',
    entries: ['search'],
    bound: '0.6 times the size of the texts',
    frees: 'remove the folder; palimpsest search --no-index searches without it',
  },
  { name: 'journal', entries: ['journal', 'remote'], bound: 'a record is removed once the database has it' },
  {
    name: 'log of gateways',
    entries: ['gateway'],
    bound: 'palimpsest watch removes a file a week after its last request',
    frees: 'remove the files of gateways that have ended',
  },
  { name: "node's log", entries: ['logs'], bound: 'four files of 5 MB', frees: 'remove the files node.log.1 to 3' },
  {
    name: 'replaced files',
    entries: ['restores'],
    bound: 'the files that restores replaced',
    frees: 'remove the folders of restores that you will not undo',
  },
  {
    name: 'logs of replays',
    entries: ['replays'],
    bound: 'a line for each call of a replayed session',
    frees: 'remove the files; an interrupted replay then starts again',
  },
  { name: "node's temporary files", entries: ['tmp'], bound: 'a copy of the library of RocksDB' },
  { name: 'checkpoint', entries: ['checkpoint'], bound: 'one checkpoint, of links to files of the index' },
];

const namesIn = (folder: string): Promise<readonly string[]> => readdir(folder).catch((): string[] => []);

async function bytesOf(paths: readonly string[]): Promise<number> {
  const sizes = await Promise.all(paths.map(bytesBelow));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function placeOf({ paths, ...place }: Omit<DiskPlace, 'bytes'>): Promise<DiskPlace> {
  return { ...place, paths, bytes: await bytesOf(paths) };
}

/**
 * Returns the builds of the node program in the cache. Builds that no node used for a day form a
 * separate place.
 */
async function buildsIn(cacheDir: string): Promise<readonly Omit<DiskPlace, 'bytes'>[]> {
  const found = (await namesIn(cacheDir)).filter((name) => /^(?:node-|\.draft-)/.test(name));
  const aged = await Promise.all(
    found.map(async (name) => ({
      path: join(cacheDir, name),
      usedMs: (await stat(join(cacheDir, name)).catch(() => undefined))?.mtimeMs ?? 0,
    })),
  );
  const isOld = ({ usedMs }: { readonly usedMs: number }): boolean => Date.now() - usedMs > TIME_LIMITS.draftMs;
  const bound = 'starting a node removes builds that no node used for a week';
  const pathsOf = (some: readonly { readonly path: string }[]): readonly string[] => some.map(({ path }) => path);
  return [
    { name: "node's build", paths: pathsOf(aged.filter((one) => !isOld(one))), bound },
    {
      name: 'old builds',
      paths: pathsOf(aged.filter(isOld)),
      bound,
      frees: 'remove them, or wait until they are a week old',
    },
  ];
}

/** Measures everything that Palimpsest stores on this disk, largest first. */
export async function diskPlaces(folders: {
  readonly dataDir: string;
  readonly cacheDir: string;
}): Promise<readonly DiskPlace[]> {
  const { dataDir, cacheDir } = folders;
  const names = await namesIn(dataDir);
  const used = new Set(USES.flatMap(({ entries }) => entries));
  const at = (some: readonly string[]): readonly string[] => some.map((name) => join(dataDir, name));
  const places = await Promise.all(
    [
      ...USES.map(({ entries, ...use }) => ({ ...use, paths: at(entries.filter((one) => names.includes(one))) })),
      {
        name: 'lists and reports',
        paths: at(names.filter((name) => isOwnEntry(name) && !used.has(name))),
        bound: 'a line for each session or process',
      },
      {
        name: 'exports and other files',
        paths: at(names.filter((name) => !isOwnEntry(name))),
        bound: 'none: the program does not remove them',
        frees: 'move them elsewhere, or remove them',
      },
      ...(await buildsIn(cacheDir)),
    ].map(placeOf),
  );
  return places.filter(({ bytes }) => bytes > 0).sort((a, b) => b.bytes - a.bytes);
}

/** Returns the bytes of a database's logs, which the next rewrite of its files removes. */
export async function rewrittenBytes(dataDir: string): Promise<number> {
  const stores = await Promise.all(
    DATABASE.map(async (store) => {
      const logs = (await namesIn(join(dataDir, store))).filter((name) => /^LOG|\.log$/.test(name));
      return logs.map((name) => join(dataDir, store, name));
    }),
  );
  return bytesOf(stores.flat());
}

import { lstat, readdir, realpath, rm, rmdir } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isWithin } from '../filesystem/access/mounts.js';
import { type Settings, UsageError } from '../host/settings.js';
import { watchOwner } from '../host/watch-report.js';
import { sessionLockOwners } from '../journal/session-lock.js';
import { defaultCacheDir } from '../node/choose-runtime.js';
import { findDataFolder } from '../node/data-folder.js';
import { isOwnEntry } from '../node/private-folder.js';
import { ownRuntimeFolder } from '../node/runtime-folder.js';
import { endProcess, stopNode } from '../node/stop-node.js';
import { bytesBelow } from '../process/bytes-below.js';
import { remoteFolders } from '../process/data-folder.js';
import { removeDeadDrafts } from '../process/drafts.js';
import { namedLockOwner } from '../process/lock.js';
import { livingOwners } from '../process/owned-file.js';
import { isAlive, type ProcessIdentity, processIdentitySchema } from '../process/process-identity.js';

/** The folders of a user that Palimpsest writes to. */
interface OwnFolders {
  readonly dataDir: string;
  readonly cacheDir: string;
  /** The folder of the node's socket, which may lie outside the data folder. */
  readonly runtimeDir: string;
}

/** A folder with files of Palimpsest. */
export interface Leftover {
  readonly path: string;
  readonly kind: 'data' | 'cache' | 'socket';
  readonly bytes: number;
}

/**
 * Returns the folders that Palimpsest uses with these settings.
 * @throws {UsageError} usage – the data folder holds the user's home, so its files are the user's
 */
export async function ownFolders({ dataDir, cacheDir, runtimeDir }: Settings['node']): Promise<OwnFolders> {
  const dir = (await findDataFolder(dataDir))?.dir ?? dataDir;
  const home = await realpath(homedir()).catch(() => homedir());
  if (isWithin(home, dir))
    throw new UsageError(
      `The data folder ${dir} holds your home folder, so palimpsest uninstall does not touch it. ` +
        'Name the folder of Palimpsest with PALIMPSEST_DATA.',
    );
  return { dataDir: dir, cacheDir: cacheDir ?? defaultCacheDir(), runtimeDir: ownRuntimeFolder(dir, runtimeDir) };
}

const namesIn = (folder: string): Promise<readonly string[]> => readdir(folder).catch(() => []);

/** The subfolders of a data folder whose files name the process that wrote them. */
const PROCESS_FOLDERS = ['users', 'trackers', 'loops', 'gateway'] as const;

async function runningIn(folder: string): Promise<readonly ProcessIdentity[]> {
  const listed = PROCESS_FOLDERS.map((name) => livingOwners(join(folder, name), processIdentitySchema).catch(() => []));
  const watching = watchOwner(folder).then((owner) => (owner === undefined ? [] : [owner]));
  const writers = await Promise.all([...listed, sessionLockOwners(folder).catch(() => []), watching.catch(() => [])]);
  const alive = await Promise.all(writers.flat().map(async (owner) => ((await isAlive(owner)) ? [owner] : [])));
  return alive.flat();
}

/** Returns the processes that build a node or make its archive. */
async function buildersIn(cacheDir: string): Promise<readonly ProcessIdentity[]> {
  const locks = (await namesIn(cacheDir)).filter((name) => /^node-[0-9a-f]{16}\.lock$/.test(name));
  const owners = await Promise.all(locks.map((name) => namedLockOwner(join(cacheDir, name)).catch(() => undefined)));
  return owners.flatMap((owner) => (owner === undefined ? [] : [owner]));
}

/**
 * Stops every server, loop and build that uses these folders, then the node. Returns the pids of
 * the processes that ended, and whether a node ran.
 * @throws {NodeError} `stop-failed` if the node does not end
 */
export async function stopAll({
  dataDir,
  cacheDir,
}: OwnFolders): Promise<{ readonly stopped: readonly number[]; readonly node: boolean }> {
  const remote = (await namesIn(remoteFolders(dataDir))).map((name) => join(remoteFolders(dataDir), name));
  const found = (await Promise.all([...[dataDir, ...remote].map(runningIn), buildersIn(cacheDir)])).flat();
  const each = new Map(found.filter(({ pid }) => pid !== process.pid).map((owner) => [owner.pid, owner]));
  const ended = await Promise.all([...each.values()].map(async (owner) => ({ owner, ended: await endProcess(owner) })));
  const node = await stopNode(dataDir);
  // Remove the drafts of a build's trial run that just ended.
  await removeDeadDrafts(tmpdir(), { isOurs: (name) => name.startsWith('palimpsest.'), recursive: true });
  return { stopped: ended.flatMap((one) => (one.ended ? [one.owner.pid] : [])), node };
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** Returns the existing folders with files of Palimpsest, and their sizes. */
export async function leftovers({ dataDir, cacheDir, runtimeDir }: OwnFolders): Promise<readonly Leftover[]> {
  const places = [
    { path: dataDir, kind: 'data' as const },
    { path: cacheDir, kind: 'cache' as const },
    ...(dirname(runtimeDir) === dataDir ? [] : [{ path: runtimeDir, kind: 'socket' as const }]),
  ];
  const found = await Promise.all(
    places.map(async (place) =>
      (await isThere(place.path)) ? [{ ...place, bytes: await bytesBelow(place.path) }] : [],
    ),
  );
  return found.flat();
}

/** The entries of the cache folder that Palimpsest creates. */
const isOwnCacheEntry = (name: string): boolean => /^(?:node-[0-9a-f]{16}|\.draft-[0-9a-f-]{36})/.test(name);

/** Returns whether a folder has records of changed settings, which an undo still needs. */
async function hasRecords(path: string): Promise<boolean> {
  return (await namesIn(path)).some((name) => name.endsWith('.json'));
}

/** Returns the entries of a folder to remove and those to keep. */
async function sorted({ path, kind }: Leftover): Promise<readonly [readonly string[], readonly string[]]> {
  const names = await namesIn(path);
  if (kind === 'socket') return [names, []];
  const isOurs = kind === 'data' ? isOwnEntry : isOwnCacheEntry;
  const others = names.filter((name) => !isOurs(name));
  // Another program's folder may have entries with such common names as `logs`.
  if (kind === 'data' && others.length > 0 && !names.includes('palimpsest.json')) return [[], names];
  const needed = kind === 'data' && (await hasRecords(join(path, 'agents'))) ? ['agents'] : [];
  return [names.filter((name) => isOurs(name) && !needed.includes(name)), [...others, ...needed]];
}

/**
 * Removes the files of Palimpsest in these folders, and each folder that is then empty. Returns the
 * paths that stay: files of other programs, and records of settings that were not restored.
 */
export async function removeLeftovers(found: readonly Leftover[]): Promise<readonly string[]> {
  const kept: string[] = [];
  for (const leftover of found) {
    const { path } = leftover;
    const [ours, others] = await sorted(leftover);
    for (const name of ours) await rm(join(path, name), { recursive: true, force: true });
    kept.push(...others.map((name) => join(path, name)));
    // This fails if the folder holds other files.
    await rmdir(path).catch(() => undefined);
  }
  return kept;
}

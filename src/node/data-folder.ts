import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, realpath, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import * as z from 'zod';
import { remoteFolders } from '../process/data-folder.js';
import { draftOf, removeDeadDrafts } from '../process/drafts.js';
import { LockError } from '../process/lock.js';
import { namesIn, replaceFile, textOf } from '../process/owned-file.js';
import { systemCode } from '../process/system-error.js';
import { codeOf, messageOf } from '../values/thrown.js';
import { NodeError } from './errors.js';
import { isOwnEntry, makePrivate } from './private-folder.js';

/**
 * The format of what lies in the data folder that this version writes; it reads those before it too. 2: parts have ids of their own (decision 0012).
 * The marker says so before anything of the format is written, so that no earlier version meets what it cannot read.
 */
export const DATA_FORMAT = 2;

/** The file of a data folder that says which log its index is made from; the node reads it as its settings. */
export const SHARED_LOG_FILE = 'shared-log.json';

/** Where in a data folder the database lies. */
const DATABASE_FOLDERS: readonly string[] = ['golden', 'index'];

/** The places in one data folder. */
export interface DataFolder {
  /** Absolute, symbolic links resolved: one folder is one node, however it is named. */
  readonly dir: string;
  readonly stateFile: string;
  readonly logFile: string;
  /** Held by whoever starts or stops the node. */
  readonly startLock: string;
  /** Kernel lock held by the node itself for its whole life. */
  readonly nodeLock: string;
  /** One file for each process that uses the node. */
  readonly usersDir: string;
  /** The JVM's own temporary folder. */
  readonly tmpDir: string;
}

/** The places in a data folder, which need not exist. */
export function dataFolderAt(dir: string): DataFolder {
  return {
    dir,
    stateFile: join(dir, 'node.json'),
    logFile: join(dir, 'logs', 'node.log'),
    startLock: join(dir, 'start.lock'),
    nodeLock: join(dir, 'node.lock'),
    usersDir: join(dir, 'users'),
    tmpDir: join(dir, 'tmp'),
  };
}

/** The data folder of that name, links resolved; undefined when there is none. Creates nothing. */
export async function findDataFolder(dataDir: string): Promise<DataFolder | undefined> {
  try {
    return dataFolderAt(await realpath(resolve(dataDir)));
  } catch {
    return undefined;
  }
}

const markerSchema = z.object({ format: z.int().positive() });

/**
 * The format that the text of a marker file says.
 * @throws {NodeError} `data-corrupt` or `data-newer`
 */
function checkedFormat(text: string, path: string): number {
  let format: number;
  try {
    format = markerSchema.parse(JSON.parse(text)).format;
  } catch (cause) {
    throw new NodeError(
      'data-corrupt',
      `${path} does not say which format the data folder has (it should be like {"format":${DATA_FORMAT}}). Restore it from a backup, or name another folder with --data.`,
      { cause },
    );
  }
  if (format > DATA_FORMAT) {
    throw new NodeError(
      'data-newer',
      `${path} says format ${format}; this version knows formats up to ${DATA_FORMAT}. Use the newer version of Palimpsest that made it, or name another folder with --data.`,
    );
  }
  return format;
}

/**
 * Refuses a log of another format: what this version would write into it, those who use it could not read. A node that says no format has passed its own check.
 * @throws {NodeError} `data-newer` or `data-older`
 */
export function requireLogFormat(format: number | null | undefined, node: string): void {
  if (format === null || format === undefined || format === DATA_FORMAT) return;
  const [code, next] =
    format > DATA_FORMAT
      ? (['data-newer', 'Use the newer version of Palimpsest that its nodes have'] as const)
      : (['data-older', 'Use the version that its nodes have, or take the log along to this one as its changelog says'] as const);
  throw new NodeError(
    code,
    `The log of ${node} has format ${format}; this version reads and writes format ${DATA_FORMAT}. ${next}. What was acknowledged stays in the journal.`,
  );
}

const UNWRITABLE: ReadonlySet<string> = new Set([
  'EACCES',
  'EPERM',
  'EROFS',
  'ENOENT',
  'ENOTDIR',
  'EEXIST',
  'EISDIR',
  'ELOOP',
  'ENAMETOOLONG',
  'EIO',
]);

/**
 * The NodeError that a failure in a data folder stands for: of a system call, of a lock that stayed in other hands, of a caller that gave up waiting. Anything
 * else comes back as it is.
 */
export function nodeFailure(dir: string, error: unknown): unknown {
  if (error instanceof LockError) return new NodeError('locked', error.message, { cause: error });
  if (codeOf(error) === 'ABORT_ERR') {
    return new NodeError('aborted', 'Waiting for the node was cancelled by the caller.', { cause: error });
  }
  const code = systemCode(error);
  if (code === undefined) return error;
  const reason = messageOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new NodeError('no-space', `There is no space left for the data folder ${dir} (${reason}). Free some, then try again.`, {
      cause: error,
    });
  }
  if (!UNWRITABLE.has(code)) return error;
  return new NodeError(
    'data-unwritable',
    `The data folder ${dir} cannot be written (${reason}). Give yourself access to it, or name another with --data or PALIMPSEST_DATA.`,
    { cause: error },
  );
}

const markerOf = (dir: string): string => join(dir, 'palimpsest.json');

/**
 * Checks that this version knows the format of what a data folder holds, before anything is written there. Changes nothing; gives the format, undefined for a
 * folder that holds no database yet.
 * @throws {NodeError} `data-newer`, or `data-corrupt` for a marker that is damaged, or missing beside a database
 */
export async function checkDataFormat(dir: string): Promise<number | undefined> {
  const text = await textOf(markerOf(dir)).catch((error: unknown) => {
    throw nodeFailure(dir, error);
  });
  if (text !== undefined) return checkedFormat(text, markerOf(dir));
  const found = (await namesIn(dir)).filter((name) => DATABASE_FOLDERS.includes(name));
  if (found.length === 0) return undefined;
  throw new NodeError(
    'data-corrupt',
    `${dir} holds a database (${found.join(', ')}) but no palimpsest.json that says its format. Restore that file, or name another folder with --data.`,
  );
}

/** Says in a data folder that it has the format of this version: earlier ones refuse it from then on. */
export const raiseDataFormat = (dir: string): Promise<void> =>
  replaceFile(markerOf(dir), `${JSON.stringify({ format: DATA_FORMAT })}\n`, { flush: true });

/** Where in a data folder, and in those for nodes that someone else runs, files appear whole. */
const DRAFTED_FOLDERS = ['users', 'trackers', 'loops', 'sessions', 'journal'] as const;

/** Removes what killed processes left half-made in a data folder. Touches nothing that a living process makes, and nothing that is not ours. Never rejects. */
export async function sweepDataFolder(dir: string): Promise<void> {
  await removeDeadDrafts(dir, { isOurs: isOwnEntry, isDataFolder: true });
  const remote = await namesIn(remoteFolders(dir)).catch(() => []);
  const folders = [dir, ...remote.map((name) => join(remoteFolders(dir), name))];
  await Promise.all(
    folders.flatMap((folder) => DRAFTED_FOLDERS.map((name) => removeDeadDrafts(join(folder, name), { isDataFolder: true }))),
  );
}

/**
 * Closes a data folder that exists, and all that is kept in it, to everybody but its owner, checks its format, and removes what killed processes left half-made. For whoever
 * writes there before the node is asked for.
 * @throws {NodeError} `data-newer`, `data-corrupt`; `data-unwritable` when it belongs to another user, its modes cannot be changed, or it is a shared folder that is used for other things too
 */
export async function protectDataFolder(dataDir: string): Promise<void> {
  const folder = await findDataFolder(dataDir);
  if (folder === undefined) return;
  try {
    await makePrivate(folder.dir);
    if (!(await lstat(folder.dir)).isDirectory()) return;
    await checkDataFormat(folder.dir);
    await sweepDataFolder(folder.dir);
  } catch (error) {
    throw nodeFailure(folder.dir, error);
  }
}

/**
 * Makes the data folder ready for use, closes it and all that is kept in it to everybody but its owner, and checks its format.
 * @throws {NodeError} `data-unwritable`, `no-space`, `data-corrupt` or `data-newer`
 */
export async function openDataFolder(dataDir: string): Promise<DataFolder> {
  const wanted = resolve(dataDir);
  try {
    if ((await mkdir(wanted, { recursive: true, mode: 0o700 })) !== undefined) await chmod(wanted, 0o700);
    const folder = dataFolderAt(await realpath(wanted));
    await makePrivate(folder.dir);
    await mkdir(join(folder.dir, 'logs'), { recursive: true, mode: 0o700 });
    await mkdir(folder.usersDir, { recursive: true, mode: 0o700 });
    // An existing folder may have lost its write permission since.
    const probe = await draftOf(join(folder.usersDir, 'probe'));
    await writeFile(probe, 'x', { mode: 0o600 });
    await rm(probe, { force: true });
    const format = await checkDataFormat(folder.dir);
    // What lies there beside a shared log has the log's format, and whether this version may use that its node finds out.
    const isShared = format !== undefined && (await namesIn(folder.dir)).includes(SHARED_LOG_FILE);
    if (format !== DATA_FORMAT && !isShared) await raiseDataFormat(folder.dir);
    return folder;
  } catch (error) {
    throw nodeFailure(wanted, error);
  }
}

/** Bytes that a node needs to begin anew beside what its logs hold: new logs, manifests, what it writes until it is ready. */
const LEAST_ROOM = 16_777_216;

/** What the disks of a node's database have, and what a start needs of them, both in bytes. */
export interface DiskRoom {
  /** The least that is free on the disks that the database lies on; undefined where the folder cannot be looked at. */
  readonly free: number | undefined;
  /** What must be free for a node to begin anew: RocksDB writes what its logs hold into tables before it removes them. */
  readonly least: number;
  /** False when a start would fail for want of room, as far as can be seen. */
  readonly suffices: boolean;
}

/** Looks at the disks of a data folder; a database that does not exist yet needs the least. */
export async function diskRoom(dataDir: string): Promise<DiskRoom> {
  const databases = DATABASE_FOLDERS.map((name) => join(dataDir, name));
  const disks = await Promise.all([dataDir, ...databases].map((place) => statfs(place).catch(() => undefined)));
  const free = disks.flatMap((disk) => (disk === undefined ? [] : [disk.bavail * disk.bsize]));
  const names = await Promise.all(databases.map((folder) => namesIn(folder).catch(() => [])));
  const logs = names.flatMap((files, at) => files.filter((file) => file.endsWith('.log')).map((file) => join(databases[at] ?? '', file)));
  const found = await Promise.all(logs.map((file) => stat(file).catch(() => undefined)));
  const least = found.reduce((sum, log) => sum + (log?.size ?? 0), LEAST_ROOM);
  const room = free.length === 0 ? undefined : Math.min(...free);
  return { free: room, least, suffices: room === undefined || room >= least };
}

/** Longest path that a unix socket takes everywhere: `sun_path` has 104 bytes on macOS, 108 on Linux, a final NUL included. */
export const MAX_SOCKET_PATH_BYTES = 100;

const SOCKET_NAME = 'xtdb.sock';

/**
 * The folder for a node's socket: `run` in the data folder, or, where that path is too long for a socket, one named by a hash of it under
 * `runtimeDir` (the user's XDG runtime folder), or under the system's temporary folder where that one is too long or missing.
 */
export function runtimeFolderFor(
  dataDir: string,
  roots: { readonly runtimeDir?: string | undefined; readonly tmpDir: string; readonly user: string },
): string {
  const fits = (dir: string): boolean => Buffer.byteLength(join(dir, SOCKET_NAME)) <= MAX_SOCKET_PATH_BYTES;
  const near = join(dataDir, 'run');
  if (fits(near)) return near;
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  const own = roots.runtimeDir ? join(roots.runtimeDir, 'palimpsest', name) : undefined;
  return own !== undefined && fits(own) ? own : join(roots.tmpDir, `palimpsest-${roots.user}-${name}`);
}

/** The socket in a runtime folder. */
export function socketIn(runtimeFolder: string): string {
  return join(runtimeFolder, SOCKET_NAME);
}

/**
 * Makes the runtime folder of a data folder, open to its owner alone, and returns its path.
 * @throws {NodeError} `data-unwritable` when somebody else owns it or could look inside: a shared temporary folder invites such traps
 */
export async function makeRuntimeFolder(dataDir: string, runtimeDir: string | undefined): Promise<string> {
  const { uid, username } = userInfo();
  const dir = runtimeFolderFor(dataDir, { runtimeDir, tmpDir: tmpdir(), user: uid >= 0 ? String(uid) : username });
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const stat = await lstat(dir);
    const isOurs = stat.isDirectory() && (uid < 0 || (stat.uid === uid && (stat.mode & 0o077) === 0));
    if (isOurs) return dir;
  } catch (cause) {
    throw new NodeError(
      'data-unwritable',
      `The folder for the node's socket, ${dir}, cannot be made (${String(cause)}). Give yourself access to it.`,
      {
        cause,
      },
    );
  }
  throw new NodeError(
    'data-unwritable',
    `${dir}, the folder for the node's socket, must belong to you alone (mode 0700). Remove it, then try again.`,
  );
}

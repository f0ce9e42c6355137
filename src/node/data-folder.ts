import { chmod, lstat, mkdir, realpath, rm, stat, statfs, writeFile } from 'node:fs/promises';
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
 * The data format that this version writes. It also reads earlier formats. Format 2 gives parts
 * their own ids (decision 0012). The marker in the data folder is raised before such data is
 * written, so that earlier versions refuse the folder.
 */
export const DATA_FORMAT = 2;

/** The file in a data folder that names the log of its index. The node reads it as its settings. */
export const SHARED_LOG_FILE = 'shared-log.json';

/** Folders of the database in a data folder. */
const DATABASE_FOLDERS: readonly string[] = ['golden', 'index'];

/** The paths in one data folder. */
export interface DataFolder {
  /** Absolute, with symbolic links resolved, so that every path of a folder leads to one node. */
  readonly dir: string;
  readonly stateFile: string;
  readonly logFile: string;
  /** The lock of the process that starts or stops the node. */
  readonly startLock: string;
  /** The file that the node locks in the kernel for its whole life. */
  readonly nodeLock: string;
  /** The folder with one file per process that uses the node. */
  readonly usersDir: string;
  /** The JVM's temporary folder. */
  readonly tmpDir: string;
}

/** Returns the paths in a data folder, which need not exist. */
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

/** Returns the existing data folder with links resolved; undefined if there is none. Read-only. */
export async function findDataFolder(dataDir: string): Promise<DataFolder | undefined> {
  try {
    return dataFolderAt(await realpath(resolve(dataDir)));
  } catch {
    return undefined;
  }
}

const markerSchema = z.object({ format: z.int().positive() });

/**
 * Parses the format in a marker file.
 * @throws {NodeError} `data-corrupt` or `data-newer`
 */
function checkedFormat(text: string, path: string): number {
  let format: number;
  try {
    format = markerSchema.parse(JSON.parse(text)).format;
  } catch (cause) {
    throw new NodeError(
      'data-corrupt',
      `${path} does not say which format the data folder has (it should be like {"format":${DATA_FORMAT}}). ` +
        'Restore it from a backup, or name another folder with --data.',
      { cause },
    );
  }
  if (format > DATA_FORMAT) {
    throw new NodeError(
      'data-newer',
      `${path} says format ${format}; this version knows formats up to ${DATA_FORMAT}. ` +
        'Use the newer version of Palimpsest that made it, or name another folder with --data.',
    );
  }
  return format;
}

/**
 * Rejects a log of another format, because other users of that log could not read this version's
 * data. If a node reports no format, it has checked the format itself.
 * @throws {NodeError} `data-newer` or `data-older`
 */
export function requireLogFormat(format: number | null | undefined, node: string): void {
  if (format === null || format === undefined || format === DATA_FORMAT) return;
  const [code, next] =
    format > DATA_FORMAT
      ? (['data-newer', 'Use the newer version of Palimpsest that its nodes have'] as const)
      : ([
          'data-older',
          'Use the version of its nodes, or migrate the log to this version as the changelog says',
        ] as const);
  throw new NodeError(
    code,
    `The log of ${node} has format ${format}; this version reads and writes format ${DATA_FORMAT}. ${next}. ` +
      'Acknowledged steps stay in the journal.',
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
 * Converts a failure in a data folder to a NodeError: a system error, a lock of another process, or
 * an aborted wait. Returns any other error unchanged.
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
    return new NodeError(
      'no-space',
      `There is no space left for the data folder ${dir} (${reason}). Free some space, then try again.`,
      {
        cause: error,
      },
    );
  }
  if (!UNWRITABLE.has(code)) return error;
  return new NodeError(
    'data-unwritable',
    `The data folder ${dir} cannot be written (${reason}). ` +
      'Get access to it, or name another folder with --data or PALIMPSEST_DATA.',
    { cause: error },
  );
}

const markerOf = (dir: string): string => join(dir, 'palimpsest.json');

/**
 * Checks that this version knows the format of a data folder before it writes there. Read-only.
 * Returns the format; undefined for a folder without a database.
 * @throws {NodeError} `data-newer`, or `data-corrupt` if the marker is damaged, or missing although
 *   the folder has a database
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
    `${dir} holds a database (${found.join(', ')}) but no palimpsest.json that says its format. ` +
      'Restore that file, or name another folder with --data.',
  );
}

/**
 * Raises the format of a data folder to this version's. Earlier versions then refuse the folder.
 */
export const raiseDataFormat = (dir: string): Promise<void> =>
  replaceFile(markerOf(dir), `${JSON.stringify({ format: DATA_FORMAT })}\n`, { flush: true });

/** Folders that may contain drafts, in a data folder and in its folders for remote nodes. */
const DRAFTED_FOLDERS = ['users', 'trackers', 'loops', 'sessions', 'journal'] as const;

/**
 * Removes unfinished files of killed processes from a data folder. Does not touch files of living
 * processes or of other programs. Never rejects.
 */
export async function sweepDataFolder(dir: string): Promise<void> {
  await removeDeadDrafts(dir, { isOurs: isOwnEntry, isDataFolder: true });
  const remote = await namesIn(remoteFolders(dir)).catch(() => []);
  const folders = [dir, ...remote.map((name) => join(remoteFolders(dir), name))];
  await Promise.all(
    folders.flatMap((folder) =>
      DRAFTED_FOLDERS.map((name) => removeDeadDrafts(join(folder, name), { isDataFolder: true })),
    ),
  );
}

/**
 * Restricts an existing data folder and its content to its owner, checks its format, and removes
 * unfinished files of killed processes. Call it before writing to the folder without a node.
 * @throws {NodeError} `data-newer`, `data-corrupt`; `data-unwritable` if it belongs to another
 *   user, its modes cannot change, or it is a shared folder with other content
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
 * Creates the data folder if necessary, restricts it and its content to its owner, and checks its
 * format.
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
    // An existing folder may have lost its write permission.
    const probe = await draftOf(join(folder.usersDir, 'probe'));
    await writeFile(probe, 'x', { mode: 0o600 });
    await rm(probe, { force: true });
    const format = await checkDataFormat(folder.dir);
    // With a shared log, the log's format counts. The node checks whether this version may use it.
    const isShared = format !== undefined && (await namesIn(folder.dir)).includes(SHARED_LOG_FILE);
    if (format !== DATA_FORMAT && !isShared) await raiseDataFormat(folder.dir);
    return folder;
  } catch (error) {
    throw nodeFailure(wanted, error);
  }
}

/**
 * Bytes that a restarting node needs in addition to the size of its logs: for new logs, manifests,
 * and writes until it is ready.
 */
const LEAST_ROOM = 16_777_216;

/** Free space on the disks of a node's database, and the space that a start needs, in bytes. */
export interface DiskRoom {
  /** The smallest free space on the database's disks; undefined if the folder is unreadable. */
  readonly free: number | undefined;
  /**
   * Free space that a node needs to restart. RocksDB writes the content of its logs into tables
   * before it removes them.
   */
  readonly least: number;
  /** False if a start would apparently fail for lack of space. */
  readonly suffices: boolean;
}

/**
 * Measures the disks of a data folder. A database that does not exist yet needs only the minimum.
 */
export async function diskRoom(dataDir: string): Promise<DiskRoom> {
  const databases = DATABASE_FOLDERS.map((name) => join(dataDir, name));
  const disks = await Promise.all([dataDir, ...databases].map((place) => statfs(place).catch(() => undefined)));
  const free = disks.flatMap((disk) => (disk === undefined ? [] : [disk.bavail * disk.bsize]));
  const names = await Promise.all(databases.map((folder) => namesIn(folder).catch(() => [])));
  const logs = names.flatMap((files, at) =>
    files.filter((file) => file.endsWith('.log')).map((file) => join(databases[at] ?? '', file)),
  );
  const found = await Promise.all(logs.map((file) => stat(file).catch(() => undefined)));
  const least = found.reduce((sum, log) => sum + (log?.size ?? 0), LEAST_ROOM);
  const room = free.length === 0 ? undefined : Math.min(...free);
  return { free: room, least, suffices: room === undefined || room >= least };
}

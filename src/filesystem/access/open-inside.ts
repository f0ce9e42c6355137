import { isUtf8 } from 'node:buffer';
import {
  type BigIntStats,
  close,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  open as openDescriptor,
  readlinkSync,
} from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { promisify } from 'node:util';
import { systemCode } from '../../process/system-error.js';
import { named, SourceError, sourceErrorFrom } from './errors.js';
import { fromNative, toNative } from './native-path.js';
import type { AllowedRoots } from './roots.js';

/** An open file or folder, verified to lie inside the roots. The caller closes the handle. */
export interface OpenInside {
  readonly handle: FileHandle;
  /** Taken from the open file, not from its name. */
  readonly stats: BigIntStats;
}

/** The kind of a file that is not regular. */
export type IrregularKind = 'directory' | 'fifo' | 'socket' | 'device' | 'symlink';

const DELETED = ' (deleted)';
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

const openFd = promisify<string, number, number>(openDescriptor);

/**
 * Whether the kernel reports the path of an open file, resolves entries through a folder's handle,
 * and lets a program open an inherited descriptor.
 */
export const HANDLES_HAVE_PATHS = process.platform === 'linux' && existsSync('/proc/self/fd');

/** Returns the kind of a file that is not regular; `undefined` for a regular one. */
export function irregularKind(stats: {
  isFile(): boolean;
  isDirectory(): boolean;
  isFIFO(): boolean;
  isSocket(): boolean;
  isSymbolicLink(): boolean;
}): IrregularKind | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isDirectory()) return 'directory';
  if (stats.isSymbolicLink()) return 'symlink';
  if (stats.isFIFO()) return 'fifo';
  return stats.isSocket() ? 'socket' : 'device';
}

/** Returns the error for a file that is not regular. */
export function notRegularError(kind: IrregularKind, shown: string): SourceError {
  if (kind === 'directory')
    return new SourceError('is-directory', `${named(shown)} is a folder, not a file`, { path: shown });
  return new SourceError('not-regular', `${named(shown)} is a ${kind}, not a regular file`, { path: shown });
}

/**
 * Returns a path to a name inside an open folder. If the system supports it, the path leads to that
 * folder even after the folder was renamed.
 */
export function entryPath(folder: FileHandle, folderPath: string, name: string): string {
  return HANDLES_HAVE_PATHS ? `/proc/self/fd/${folder.fd}/${name}` : toNative(posix.join(folderPath, name));
}

/**
 * Returns the stats of an open file. Synchronous, because opening has cached them, and using a
 * thread takes longer than the call.
 */
export function statsOf({ fd }: { readonly fd: number }): BigIntStats {
  return fstatSync(fd, { bigint: true });
}

/** Closes a file that was only read, without waiting. */
export function leave({ handle }: OpenInside): void {
  handle.close().catch(() => undefined);
}

/** Returns the real path of an open file. */
async function realPathOf(fd: number, stats: BigIntStats, path: string): Promise<string> {
  if (HANDLES_HAVE_PATHS) {
    const bytes = readlinkSync(`/proc/self/fd/${fd}`, 'buffer');
    const real = isUtf8(bytes) ? bytes.toString('utf8') : '';
    return stats.nlink === 0n && real.endsWith(DELETED) ? real.slice(0, -DELETED.length) : real;
  }
  const real = await realpath(toNative(path));
  const named = await stat(real, { bigint: true });
  return named.dev === stats.dev && named.ino === stats.ino ? fromNative(real) : '';
}

function replaced(shown: string): SourceError {
  return new SourceError('changed-underneath', `${named(shown)} was moved or replaced while it was opened; try again`, {
    path: shown,
  });
}

function outside(shown: string): SourceError {
  return new SourceError('outside-roots', `${named(shown)} is outside the allowed folders`, { path: shown });
}

/** A path to open, and its name in messages. */
interface Opening {
  readonly roots: AllowedRoots;
  readonly path: string;
  readonly shown: string;
}

/**
 * Verifies that an open file has the expected path and lies inside the roots. Returns its stats.
 */
async function verifiedStats(fd: number, { roots, path, shown }: Opening): Promise<BigIntStats> {
  const stats = statsOf({ fd });
  // A file unlinked between open and check has an nlink of 1 here and a path that ends in "
  // (deleted)". A second check decides.
  let real = await realPathOf(fd, stats, path);
  if (real !== path && real === path + DELETED) real = await realPathOf(fd, statsOf({ fd }), path);
  if (real === path) return stats;
  throw roots.holds(real) ? replaced(shown) : outside(shown);
}

/** Opens with `open` and verifies the result; closes it if it is rejected. */
async function openVerified<T extends number | FileHandle>(
  opening: Opening,
  open: (path: string, flags: number) => Promise<T>,
  close: (opened: T) => unknown,
): Promise<readonly [T, BigIntStats]> {
  const { roots, path, shown } = opening;
  if (!roots.holds(path)) throw outside(shown);
  const opened = await open(toNative(path), FLAGS).catch((error: unknown) => {
    // A canonical path has no links, so a link at its end must be new.
    throw systemCode(error) === 'ELOOP' ? replaced(shown) : sourceErrorFrom(error, shown);
  });
  try {
    return [opened, await verifiedStats(typeof opened === 'number' ? opened : opened.fd, opening)];
  } catch (error) {
    await close(opened);
    throw sourceErrorFrom(error, shown);
  }
}

/**
 * Opens any kind of file at a canonical path for reading. Then verifies that the open file has that
 * path and lies inside the roots. So a file or folder that is replaced by a link between check and
 * use gives no access to another file. Never blocks on a pipe or a device. Throws {@link
 * SourceError}, including `changed-underneath` if the path is no longer canonical.
 */
export async function openInside(roots: AllowedRoots, path: string, shown: string = path): Promise<OpenInside> {
  const [handle, stats] = await openVerified({ roots, path, shown }, open, (opened) => opened.close());
  return { handle, stats };
}

/** An open file of any kind, only for reading. The caller closes it with `leaveRead`. */
export interface OpenToRead {
  readonly fd: number;
  /** Taken from the open file, not from its name. */
  readonly stats: BigIntStats;
}

/** Opens for reading like {@link openInside}, without the cost of a handle. */
export async function openToRead(roots: AllowedRoots, path: string, shown: string = path): Promise<OpenToRead> {
  const [fd, stats] = await openVerified({ roots, path, shown }, openFd, closeSync);
  return { fd, stats };
}

/** Closes a file that was only read, without waiting. */
export function leaveRead({ fd }: OpenToRead): void {
  close(fd, () => undefined);
}

/**
 * Opens a regular file like {@link openInside} and returns its descriptor and size. Meant for
 * thousands of files, whose handles would cost more than searching them. The caller closes it.
 */
export async function openDescriptorInside(
  roots: AllowedRoots,
  path: string,
  shown: string = path,
): Promise<{ readonly fd: number; readonly size: bigint }> {
  const [fd, stats] = await openVerified({ roots, path, shown }, openFd, closeSync);
  const irregular = irregularKind(stats);
  if (irregular === undefined) return { fd, size: stats.size };
  closeSync(fd);
  throw notRegularError(irregular, shown);
}

/**
 * Opens a regular file like {@link openInside}; rejects anything else with `is-directory` or
 * `not-regular`.
 */
export async function openFileInside(roots: AllowedRoots, path: string, shown: string = path): Promise<OpenInside> {
  const opened = await openInside(roots, path, shown);
  const irregular = irregularKind(opened.stats);
  if (irregular === undefined) return opened;
  await opened.handle.close();
  throw notRegularError(irregular, shown);
}

/** Opens a folder like {@link openInside}; rejects anything else with `not-regular`. */
export async function openFolderInside(roots: AllowedRoots, path: string, shown: string = path): Promise<OpenInside> {
  const opened = await openInside(roots, path, shown);
  if (opened.stats.isDirectory()) return opened;
  await opened.handle.close();
  throw new SourceError('not-regular', `${named(shown)} is not a folder`, { path: shown });
}

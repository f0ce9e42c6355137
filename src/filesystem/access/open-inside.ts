import { isUtf8 } from 'node:buffer';
import {
  type BigIntStats,
  close,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  open as openDescriptor,
  openSync,
  readlinkSync,
} from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { promisify } from 'node:util';
import { systemCode } from '../../process/system-error.js';
import { named, SourceError, sourceErrorFrom } from './errors.js';
import type { AllowedRoots } from './roots.js';
import { withoutThread } from './without-thread.js';

/** An open file or folder that was verified to lie inside the roots; whoever opens it closes the handle. */
export interface OpenInside {
  readonly handle: FileHandle;
  /** Taken from the open file itself, not from its name. */
  readonly stats: BigIntStats;
}

/** What something other than a regular file is. */
export type IrregularKind = 'directory' | 'fifo' | 'socket' | 'device' | 'symlink';

const DELETED = ' (deleted)';
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

const openFd = promisify<string, number, number>(openDescriptor);

/** Whether the kernel tells where an open file lies, lets a folder's entries be reached through its handle, and a program open what it was handed. */
export const HANDLES_HAVE_PATHS = process.platform === 'linux' && existsSync('/proc/self/fd');

/** What the file is if it is not regular; `undefined` for a regular one. */
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

/** The error for something that is not a regular file. */
export function notRegularError(kind: IrregularKind, shown: string): SourceError {
  if (kind === 'directory') return new SourceError('is-directory', `${named(shown)} is a folder, not a file`, { path: shown });
  return new SourceError('not-regular', `${named(shown)} is a ${kind}, not a regular file`, { path: shown });
}

/** A name inside an open folder that stays inside that very folder, whatever its path is renamed to meanwhile (where the system offers it). */
export function entryPath(folder: FileHandle, folderPath: string, name: string): string {
  return HANDLES_HAVE_PATHS ? `/proc/self/fd/${folder.fd}/${name}` : posix.join(folderPath, name);
}

/** What the system knows of an open file. Asked without a thread between: opening has found it out, and a thread takes longer than the answer. */
export function statsOf({ fd }: { readonly fd: number }): BigIntStats {
  return fstatSync(fd, { bigint: true });
}

/** Lets go of a file that was only read, without anybody waiting for it. */
export function leave({ handle }: OpenInside): void {
  handle.close().catch(() => undefined);
}

/** Where an open file really lies. */
async function realPathOf(fd: number, stats: BigIntStats, path: string): Promise<string> {
  if (HANDLES_HAVE_PATHS) {
    const bytes = readlinkSync(`/proc/self/fd/${fd}`, 'buffer');
    const real = isUtf8(bytes) ? bytes.toString('utf8') : '';
    return stats.nlink === 0n && real.endsWith(DELETED) ? real.slice(0, -DELETED.length) : real;
  }
  const real = await realpath(path);
  const named = await stat(real, { bigint: true });
  return named.dev === stats.dev && named.ino === stats.ino ? real : '';
}

function replaced(shown: string): SourceError {
  return new SourceError('changed-underneath', `${named(shown)} was moved or replaced while it was opened; try again`, { path: shown });
}

function outside(shown: string): SourceError {
  return new SourceError('outside-roots', `${named(shown)} is outside the allowed folders`, { path: shown });
}

/** A path to open, and how messages name it. */
interface Opening {
  readonly roots: AllowedRoots;
  readonly path: string;
  readonly shown: string;
}

/** What an open file is, once it was found to be the path and inside the roots. */
async function verifiedStats(fd: number, { roots, path, shown }: Opening): Promise<BigIntStats> {
  const stats = statsOf({ fd });
  // A file unlinked between opening and looking has an nlink of 1 here and a path that ends in " (deleted)"; the second look settles it.
  let real = await realPathOf(fd, stats, path);
  if (real !== path && real === path + DELETED) real = await realPathOf(fd, statsOf({ fd }), path);
  if (real === path) return stats;
  throw roots.holds(real) ? replaced(shown) : outside(shown);
}

/** Opens by `open` and verifies; what was opened and is refused is closed. */
async function openVerified<T extends number | FileHandle>(
  opening: Opening,
  open: (path: string, flags: number) => Promise<T>,
  close: (opened: T) => unknown,
): Promise<readonly [T, BigIntStats]> {
  const { roots, path, shown } = opening;
  if (!roots.holds(path)) throw outside(shown);
  const opened = await open(path, FLAGS).catch((error: unknown) => {
    // A canonical path has no links: one at its end was put there since.
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
 * Opens whatever stands at a canonical path for reading and verifies on the open file itself that it is that path and inside the roots,
 * so that a folder or file swapped for a link between check and use gains nothing. Never blocks on a pipe or a device.
 * Throws {@link SourceError}, among them `changed-underneath` when the path no longer is canonical.
 */
export async function openInside(roots: AllowedRoots, path: string, shown: string = path): Promise<OpenInside> {
  const [handle, stats] = await openVerified({ roots, path, shown }, open, (opened) => opened.close());
  return { handle, stats };
}

/** An open file of whatever kind that is only read; whoever opens it lets go of it. */
export interface OpenToRead {
  readonly fd: number;
  /** Taken from the open file itself, not from its name. */
  readonly stats: BigIntStats;
  /** Whether it is read without a thread. */
  readonly atOnce: boolean;
}

/** Opens to read like {@link openInside}; without a thread where all mounts are of this machine. */
export async function openToRead(roots: AllowedRoots, path: string, shown: string = path): Promise<OpenToRead> {
  const atOnce = roots.answerAtOnce();
  const open = atOnce ? async (name: string, flags: number) => withoutThread.do(() => openSync(name, flags)) : openFd;
  const [fd, stats] = await openVerified({ roots, path, shown }, open, (opened) => leaveRead({ fd: opened, atOnce }));
  return { fd, stats, atOnce };
}

/** Lets go of a file that was only read, without anybody waiting for it. */
export function leaveRead({ fd, atOnce }: Pick<OpenToRead, 'fd' | 'atOnce'>): void {
  if (atOnce) closeSync(fd);
  else close(fd, () => undefined);
}

/**
 * The descriptor of a regular file, opened like {@link openInside}, and its bytes: for thousands of files, whose handles would cost more than their
 * searching. Whoever opens it closes it.
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

/** Opens a regular file like {@link openInside}; anything else is refused with `is-directory` or `not-regular`. */
export async function openFileInside(roots: AllowedRoots, path: string, shown: string = path): Promise<OpenInside> {
  const opened = await openInside(roots, path, shown);
  const irregular = irregularKind(opened.stats);
  if (irregular === undefined) return opened;
  await opened.handle.close();
  throw notRegularError(irregular, shown);
}

/** Opens a folder like {@link openInside}; anything else is refused with `not-regular`. */
export async function openFolderInside(roots: AllowedRoots, path: string, shown: string = path): Promise<OpenInside> {
  const opened = await openInside(roots, path, shown);
  if (opened.stats.isDirectory()) return opened;
  await opened.handle.close();
  throw new SourceError('not-regular', `${named(shown)} is not a folder`, { path: shown });
}

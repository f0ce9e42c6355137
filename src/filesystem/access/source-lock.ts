import type { FileHandle } from 'node:fs/promises';
import { posix } from 'node:path';
import { hashText } from '../../objects/hashes.js';
import type { CanonicalPath } from '../../objects/ids.js';
import { removeDeadLinkLocks, withLinkLock } from '../../process/link-lock.js';
import { LockError } from '../../process/lock.js';
import { unlessAborted } from '../../values/promises.js';
import { named, SourceError } from './errors.js';
import { entryPath } from './open-inside.js';

/** A file to change: its path, its agent-visible path, and its open parent folder. */
export interface LockedFile {
  readonly path: CanonicalPath;
  readonly shown: string;
  readonly folder: { readonly handle: FileHandle; readonly path: string };
}

/**
 * Maximum time in milliseconds that a change waits for another process's change of the same file.
 */
const LIMIT_MS = 30_000;

const LOCK = /^\.palimpsest\.[0-9a-f]{16}\.lock(?:\.[0-9a-f]{16})*$/;
const lockName = (path: string): string => `.palimpsest.${hashText(posix.basename(path)).slice(0, 16)}.lock`;

/** The last running or waiting change per path in this process. */
const latest = new Map<string, Promise<unknown>>();

/**
 * Runs `work` after all earlier work of this process on the same path. The signal ends a wait, but
 * not work that has begun.
 */
export async function inTurn<T>(path: CanonicalPath, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const before = latest.get(path) ?? Promise.resolve();
  const waited = signal === undefined ? before : unlessAborted(before, signal);
  const mine = waited.then(work);
  // Even after an aborted wait, the next caller must wait for the earlier work.
  const settled = Promise.allSettled([before, mine]);
  latest.set(path, settled);
  try {
    return await mine;
  } finally {
    settled.then(() => {
      if (latest.get(path) === settled) latest.delete(path);
    });
  }
}

/**
 * Runs `work` while no other process of this machine changes the file (decision F12). The lock lies
 * beside the file, so processes with another data folder find it, too. On a filesystem without
 * symbolic links there is no lock.
 * @throws {SourceError} busy – another process kept the lock; io – another file has the lock's name
 */
export async function withSourceLock<T>(
  { path, shown, folder }: LockedFile,
  work: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const name = lockName(path);
  let holder: number | undefined;
  const onWait = (pid: number): void => {
    holder = pid;
  };
  await removeDeadLinkLocks(entryPath(folder.handle, folder.path, ''), (one) => LOCK.test(one));
  try {
    return await withLinkLock(entryPath(folder.handle, folder.path, name), { limitMs: LIMIT_MS, signal, onWait }, work);
  } catch (error) {
    if (!(error instanceof LockError)) throw error;
    const lock = posix.join(posix.dirname(shown), name);
    const message =
      error.code === 'held'
        ? `process ${holder ?? '?'} has been changing ${named(shown)} for ${LIMIT_MS / 1_000} s`
        : `${named(shown)} cannot be changed: ${named(lock)} has the name of its lock but is not a lock; remove it`;
    throw new SourceError(error.code === 'held' ? 'busy' : 'io', message, { path: shown, cause: error });
  }
}

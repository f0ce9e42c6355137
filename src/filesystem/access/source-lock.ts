import type { FileHandle } from 'node:fs/promises';
import { posix } from 'node:path';
import { hashText } from '../../objects/hashes.js';
import type { CanonicalPath } from '../../objects/ids.js';
import { removeDeadLinkLocks, withLinkLock } from '../../process/link-lock.js';
import { LockError } from '../../process/lock.js';
import { unlessAborted } from '../../values/unless-aborted.js';
import { named, SourceError } from './errors.js';
import { entryPath } from './open-inside.js';

/** The file that is changed: its path, as the agent names it, and its open parent folder. */
export interface LockedFile {
  readonly path: CanonicalPath;
  readonly shown: string;
  readonly folder: { readonly handle: FileHandle; readonly path: string };
}

/** Longest time that a change waits for a change of the same file by another process, milliseconds. */
const LIMIT_MS = 30_000;

const LOCK = /^\.palimpsest\.[0-9a-f]{16}\.lock(?:\.[0-9a-f]{16})*$/;
const lockName = (path: string): string => `.palimpsest.${hashText(posix.basename(path)).slice(0, 16)}.lock`;

/** The last change of each path that this process has under way or waiting. */
const latest = new Map<string, Promise<unknown>>();

/** Runs `work` after all earlier work of this process on the same path. A wait ends with the signal; work that has begun does not. */
export async function inTurn<T>(path: CanonicalPath, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const before = latest.get(path) ?? Promise.resolve();
  const waited = signal === undefined ? before : unlessAborted(before, signal);
  const mine = waited.then(work);
  // Who gives up must not let the next one overtake those before.
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
 * Runs `work` while no other process of this machine changes the file (decision F12). The lock lies beside the file, because every process that can change
 * the file finds it there, whatever data folder it uses. A filesystem without symbolic links has no such lock.
 * @throws {SourceError} busy – another process kept the lock; io – something else has the lock's name
 */
export async function withSourceLock<T>({ path, shown, folder }: LockedFile, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
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
    const message =
      error.code === 'held'
        ? `${named(shown)} has been under change by process ${holder ?? '?'} for ${LIMIT_MS / 1_000} s`
        : `${named(shown)} cannot be changed: ${named(posix.join(posix.dirname(shown), name))} is in the place of its lock`;
    throw new SourceError(error.code === 'held' ? 'busy' : 'io', message, { path: shown, cause: error });
  }
}

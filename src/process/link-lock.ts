import { hash } from 'node:crypto';
import { readlinkSync, unlinkSync } from 'node:fs';
import { readdir, readlink, symlink, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { LockError, type LockKeeping, type LockWait, ownToken, tokenSchema, withLock } from './lock.js';
import { livingOwnerIn } from './owned-file.js';
import { systemCode } from './system-error.js';
import { hasNoLinks } from './take-free-name.js';

async function take(path: string, content: string): Promise<boolean> {
  try {
    await symlink(content, path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    if (hasNoLinks(error)) return true;
    throw error;
  }
}

async function contentOf(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT') return undefined;
    if (code === 'EINVAL') throw new LockError('occupied', `${path} has the name of a lock but is not one. Remove it.`);
    throw error;
  }
}

/** Ignores system errors: the end of this process frees the lock anyway. */
function release(path: string, content: string): void {
  try {
    if (readlinkSync(path) === content) unlinkSync(path);
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
  }
}

/**
 * Frees the lock of a dead owner. This requires a claim, a second such lock named after the dead
 * owner's content. The claim keeps the lock from changing hands between the check and the removal.
 */
async function removeDead(path: string, seen: string): Promise<void> {
  const claim = `${path}.${hash('sha256', seen).slice(0, 16)}`;
  const mine = JSON.stringify(await ownToken());
  if (!(await take(claim, mine))) return removeIfDead(claim);
  try {
    if ((await contentOf(path)) === seen) await unlink(path);
  } finally {
    release(claim, mine);
  }
}

async function removeIfDead(path: string): Promise<void> {
  const seen = await contentOf(path);
  if (seen !== undefined && (await livingOwnerIn(seen, tokenSchema)) === undefined) await removeDead(path, seen);
}

/**
 * Runs `work` while this process alone owns the lock `path`. The lock is a symbolic link whose
 * target names its owner and is never followed. Unlike a lock file, it is safe in a folder that
 * others write to, because nothing there is opened or read. The folder must exist. If it does not
 * support symbolic links, there is no lock and `work` runs at once. Throws the errors of `withLock`
 * and system errors.
 * @throws {LockError} occupied – something other than a lock exists at `path`
 */
export function withLinkLock<T>(path: string, options: LockWait, work: () => Promise<T>): Promise<T> {
  const link: LockKeeping = {
    path,
    take: (content) => take(path, content),
    read: () => contentOf(path),
    removeDead: (seen) => removeDead(path, seen),
    release: (content) => release(path, content),
  };
  return withLock(link, options, work);
}

/**
 * Removes the link locks that killed processes left in a folder, if `isOurs` accepts their names.
 * Never rejects; a lock that cannot be removed stays.
 */
export async function removeDeadLinkLocks(folder: string, isOurs: (name: string) => boolean): Promise<void> {
  const names = await readdir(folder).catch((): string[] => []);
  for (const name of names) if (isOurs(name)) await removeIfDead(join(folder, name)).catch(() => undefined);
}

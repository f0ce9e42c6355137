import { hash } from 'node:crypto';
import { readFileSync, readlinkSync, unlinkSync } from 'node:fs';
import { readdir, readFile, readlink, symlink, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { LockError, type LockKeeping, type LockWait, ownToken, tokenSchema, withLock } from './lock.js';
import { createWholeFile, livingOwnerIn, parseJson } from './owned-file.js';
import { SYSTEM } from './system.js';
import { systemCode } from './system-error.js';
import { hasNoLinks } from './take-free-name.js';

const occupied = (path: string): LockError =>
  new LockError('occupied', `${path} has the name of a lock but is not a lock. Remove it.`);

/** Stores the owner of a lock as a link's target or as a file's content. */
export interface LinkKind {
  make(content: string, path: string): Promise<boolean>;
  read(path: string): Promise<string>;
  readNow(path: string): string;
}

/** Stores the owner in a symbolic link. Opens nothing in the folder. */
export const LINKS: LinkKind = {
  make: (content, path) => symlink(content, path).then(() => true),
  read: (path) => readlink(path),
  readNow: (path) => readlinkSync(path),
};

/** Stores the owner in a file, for systems where symbolic links need a privilege. */
export const FILES: LinkKind = {
  make: (content, path) => createWholeFile(path, content),
  read: async (path) => {
    const content = await readFile(path, 'utf8');
    if (parseJson(content, tokenSchema) === undefined) throw occupied(path);
    return content;
  },
  readNow: (path) => readFileSync(path, 'utf8'),
};

const OWN_KIND = SYSTEM.hasLinks ? LINKS : FILES;

async function take(kind: LinkKind, path: string, content: string): Promise<boolean> {
  try {
    return await kind.make(content, path);
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    if (hasNoLinks(error)) return true;
    throw error;
  }
}

async function contentOf(kind: LinkKind, path: string): Promise<string | undefined> {
  try {
    return await kind.read(path);
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT') return undefined;
    if (code === 'EINVAL' || code === 'EISDIR') throw occupied(path);
    throw error;
  }
}

/** Frees the lock. Ignores system errors, because the end of this process frees the lock anyway. */
function release(kind: LinkKind, path: string, content: string): void {
  try {
    if (kind.readNow(path) === content) unlinkSync(path);
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
  }
}

/**
 * Frees the lock of a dead owner. Takes a claim first: a second lock, named after the dead owner's
 * content. The claim keeps the lock's owner from changing between the check and the removal.
 */
async function removeDead(kind: LinkKind, path: string, seen: string): Promise<void> {
  const claim = `${path}.${hash('sha256', seen).slice(0, 16)}`;
  const mine = JSON.stringify(await ownToken());
  if (!(await take(kind, claim, mine))) return removeIfDead(kind, claim);
  try {
    if ((await contentOf(kind, path)) === seen) await unlink(path);
  } finally {
    release(kind, claim, mine);
  }
}

async function removeIfDead(kind: LinkKind, path: string): Promise<void> {
  const seen = await contentOf(kind, path);
  if (seen !== undefined && (await livingOwnerIn(seen, tokenSchema)) === undefined) await removeDead(kind, path, seen);
}

/**
 * Runs `work` while this process owns the lock `path`. The lock is a symbolic link whose target
 * names its owner and is never followed. Unlike a lock file, it is safe in a folder that other
 * users write to, because nothing there is opened or read. The folder must exist. If it does not
 * support symbolic links, `work` runs without a lock. On Windows the lock is a file, because links
 * take a privilege there. Throws the errors of `withLock` and system errors.
 * @throws {LockError} occupied – something other than a lock exists at `path`
 */
export function withLinkLock<T>(
  path: string,
  { kind = OWN_KIND, ...options }: LockWait & { readonly kind?: LinkKind },
  work: () => Promise<T>,
): Promise<T> {
  const link: LockKeeping = {
    path,
    take: (content) => take(kind, path, content),
    read: () => contentOf(kind, path),
    removeDead: (seen) => removeDead(kind, path, seen),
    release: (content) => release(kind, path, content),
  };
  return withLock(link, options, work);
}

/**
 * Removes the link locks that killed processes left in a folder, if `isOurs` accepts their names.
 * Never rejects; a lock that cannot be removed stays.
 */
export async function removeDeadLinkLocks(
  folder: string,
  isOurs: (name: string) => boolean,
  kind: LinkKind = OWN_KIND,
): Promise<void> {
  const names = await readdir(folder).catch((): string[] => []);
  for (const name of names) if (isOurs(name)) await removeIfDead(kind, join(folder, name)).catch(() => undefined);
}

import { readFileSync, type Stats, statSync, truncateSync, unlinkSync } from 'node:fs';
import { link, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { draftOf, removeDeadDrafts } from './drafts.js';
import { rename, whenReleased } from './held-files.js';
import { isAlive, type ProcessIdentity } from './process-identity.js';
import { systemCode, unlessMissing } from './system-error.js';

/** Schema of a file that a process owns. It contains at least the identity of that process. */
export type OwnerSchema<Owner extends ProcessIdentity> = z.ZodType<Owner>;

/** A file that this process owns. It appeared with its whole content, which names this process. */
export interface OwnedFile {
  /**
   * Returns whether the file still has the content that this process wrote. False after a takeover,
   * `remove` or `vacate`. It is synchronous, so it can run before every acknowledgement. Never
   * throws.
   */
  isStillOurs(): boolean;
  /**
   * Removes the file and the lock's older generations, unless it was taken over. Idempotent; never
   * throws.
   */
  remove(): void;
  /**
   * Empties the file unless it was taken over. It then has no owner and its name stays taken.
   * Idempotent; never throws.
   */
  vacate(): void;
}

/**
 * Creates a file for this user only. It appears with its whole content or not at all. Returns false
 * if the name is taken. Throws system errors.
 */
export async function createWholeFile(path: string, content: string): Promise<boolean> {
  const draft = await draftOf(path);
  try {
    await writeFile(draft, content, { mode: 0o600, flag: 'wx' });
    // Unlike a rename, a link fails if the name is taken.
    await whenReleased(() => link(draft, path));
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Returns the text of a file; undefined if it does not exist. Throws other system errors. */
export function textOf(path: string): Promise<string | undefined> {
  return unlessMissing(readFile(path, 'utf8'));
}

/**
 * Parses the text of a JSON file. Returns undefined if the text is truncated, empty or does not
 * match the schema.
 */
export function parseJson<T>(text: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Returns the process that the text of an owned file names, if it is alive. */
export async function livingOwnerIn<Owner extends ProcessIdentity>(
  text: string | undefined,
  schema: OwnerSchema<Owner>,
): Promise<Owner | undefined> {
  // Owned files appear whole, so an unreadable one has no living owner.
  const owner = text === undefined ? undefined : parseJson(text, schema);
  return owner !== undefined && (await isAlive(owner)) ? owner : undefined;
}

/**
 * Returns the living process that owns a file. Undefined if the file is missing or unreadable, or
 * its process has ended.
 */
export async function livingOwner<Owner extends ProcessIdentity>(
  path: string,
  schema: OwnerSchema<Owner>,
): Promise<Owner | undefined> {
  return livingOwnerIn(await textOf(path), schema);
}

/**
 * Runs `work` and ignores system errors. If the folder is missing or read-only, the end of this
 * process frees the file.
 */
function attempt(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
  }
}

/** Returns whether a file is unchanged between two `stat` calls: same inode, size and time. */
export const isSameFile = (a: Stats, b: Stats): boolean =>
  a.ino === b.ino && a.dev === b.dev && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs;

/**
 * Returns the owned file at `path`, which this process has created with `content`. `older` are
 * earlier generations of the same lock.
 */
export function ownedFile(path: string, content: string, older: readonly string[] = []): OwnedFile {
  let over = false;
  /** The file's `stat` when it last had our content. */
  let seen: Stats | undefined;
  const isStillOurs = (): boolean => {
    if (over) return false;
    try {
      const now = statSync(path);
      if (seen !== undefined && isSameFile(seen, now)) return true;
      const isOurs = readFileSync(path, 'utf8') === content;
      // The next call notices a write after this `stat`.
      if (isOurs) seen = now;
      return isOurs;
    } catch {
      return false;
    }
  };
  const end = (work: () => void): void => {
    if (isStillOurs()) work();
    over = true;
  };
  return {
    isStillOurs,
    remove: () =>
      end(() => {
        // Removes the oldest generation first, so that a process that lists them at the same time
        // still sees the newest.
        for (const one of [...older, path]) attempt(() => unlinkSync(one));
      }),
    vacate: () => end(() => attempt(() => truncateSync(path))),
  };
}

/** Returns the names in a folder; none if it does not exist. Throws other system errors. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  return (await unlessMissing(readdir(folder))) ?? [];
}

/**
 * Reads the JSON files of a folder that match a schema. Skips files that are incomplete or have
 * vanished.
 */
export async function readJsonFiles<T>(folder: string, schema: z.ZodType<T>): Promise<readonly T[]> {
  const files = (await namesIn(folder)).filter((name) => name.endsWith('.json'));
  const texts = await Promise.all(files.map((name) => textOf(join(folder, name)).catch(() => undefined)));
  return texts.flatMap((text) => (text === undefined ? [] : (parseJson(text, schema) ?? [])));
}

/** Returns the living processes that own JSON files in a folder, one entry per file. Read-only. */
export async function livingOwners<Owner extends ProcessIdentity>(
  folder: string,
  schema: OwnerSchema<Owner>,
): Promise<Owner[]> {
  const owners = await readJsonFiles(folder, schema);
  const alive = await Promise.all(owners.map(isAlive));
  return owners.filter((_, i) => alive[i]);
}

/**
 * Removes the JSON files in a folder without a living owner, and the drafts that killed processes
 * left.
 */
export async function removeDeadFiles<Owner extends ProcessIdentity>(
  folder: string,
  schema: OwnerSchema<Owner>,
): Promise<void> {
  for (const name of await namesIn(folder)) {
    const path = join(folder, name);
    const isDead = name.endsWith('.json') && (await livingOwner(path, schema).catch(() => undefined)) === undefined;
    if (isDead) await rm(path, { force: true });
  }
  await removeDeadDrafts(folder, { isDataFolder: true });
}

/**
 * Replaces a file atomically, for this user only. With `flush` its content survives a power loss.
 * Throws system errors.
 */
export async function replaceFile(
  path: string,
  content: string,
  { flush = false }: { readonly flush?: boolean } = {},
): Promise<void> {
  const draft = await draftOf(path);
  try {
    await writeFile(draft, content, { mode: 0o600, flag: 'wx', flush });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

import { readFileSync, type Stats, statSync, truncateSync, unlinkSync } from 'node:fs';
import { link, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { draftOf, removeDeadDrafts } from './drafts.js';
import { isAlive, type ProcessIdentity } from './process-identity.js';
import { systemCode, unlessMissing } from './system-error.js';

/** What a file that a process owns says of it: at least which process it is. */
export type OwnerSchema<Owner extends ProcessIdentity> = z.ZodType<Owner>;

/** A file that this process owns. It appeared with its whole content, which names this process. */
export interface OwnedFile {
  /**
   * Whether the file still says what this process wrote: false once another process has taken it over, and after `remove` or `vacate`. Asks the system
   * without waiting, so that it can be asked before every acknowledgement; never throws.
   */
  isStillOurs(): boolean;
  /** Removes the file, and the older generations of a lock before it, unless it was taken over. Idempotent; never throws. */
  remove(): void;
  /** Empties the file unless it was taken over: it has no owner then, and its name stays taken. Idempotent; never throws. */
  vacate(): void;
}

/**
 * Makes a file, for its user alone, that appears under its name with its whole content or not at all. False when the name is taken.
 * Throws what the system throws.
 */
export async function createWholeFile(path: string, content: string): Promise<boolean> {
  const draft = await draftOf(path);
  try {
    await writeFile(draft, content, { mode: 0o600, flag: 'wx' });
    // A link, unlike a rename, leaves the name to whoever was first.
    await link(draft, path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** The text of a file; undefined where there is none. Throws what the system throws otherwise. */
export function textOf(path: string): Promise<string | undefined> {
  return unlessMissing(readFile(path, 'utf8'));
}

/** What the text of a JSON file says; undefined for text that is cut off, empty or of another form. */
export function parseJson<T>(text: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The process that the text of an owned file names, if it still lives. */
export async function livingOwnerIn<Owner extends ProcessIdentity>(
  text: string | undefined,
  schema: OwnerSchema<Owner>,
): Promise<Owner | undefined> {
  // Owned files appear whole, so there is no process behind one that cannot be understood.
  const owner = text === undefined ? undefined : parseJson(text, schema);
  return owner !== undefined && (await isAlive(owner)) ? owner : undefined;
}

/** The living process that owns a file; undefined when the file is missing, cannot be understood, or its process has ended. */
export async function livingOwner<Owner extends ProcessIdentity>(path: string, schema: OwnerSchema<Owner>): Promise<Owner | undefined> {
  return livingOwnerIn(await textOf(path), schema);
}

/** Swallows what the system refuses: where the folder is gone or read-only, the end of this process frees the file. */
function attempt(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
  }
}

/** Whether nothing was written under a name between two looks at it: another file, or another content, has another number, length or time. */
const isSameFile = (a: Stats, b: Stats): boolean =>
  a.ino === b.ino && a.dev === b.dev && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs;

/** The file at `path` as this process's own: it was made with this content, and `older` are the generations of the same lock before it. */
export function ownedFile(path: string, content: string, older: readonly string[] = []): OwnedFile {
  let over = false;
  /** The file when it last said what it should. */
  let seen: Stats | undefined;
  const isStillOurs = (): boolean => {
    if (over) return false;
    try {
      const now = statSync(path);
      if (seen !== undefined && isSameFile(seen, now)) return true;
      const isOurs = readFileSync(path, 'utf8') === content;
      // What was written after the look counts from the next one on.
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
        // Oldest first: whoever lists the generations in between sees that the newest one is taken.
        for (const one of [...older, path]) attempt(() => unlinkSync(one));
      }),
    vacate: () => end(() => attempt(() => truncateSync(path))),
  };
}

/** The names in a folder; none where the folder does not exist. Throws what the system throws otherwise. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  return (await unlessMissing(readdir(folder))) ?? [];
}

/** What the JSON files of a folder say, as far as they have this form; files that are half-made or gone meanwhile are passed over. */
export async function readJsonFiles<T>(folder: string, schema: z.ZodType<T>): Promise<readonly T[]> {
  const files = (await namesIn(folder)).filter((name) => name.endsWith('.json'));
  const texts = await Promise.all(files.map((name) => textOf(join(folder, name)).catch(() => undefined)));
  return texts.flatMap((text) => (text === undefined ? [] : (parseJson(text, schema) ?? [])));
}

/** The living processes that own JSON files in a folder, one entry a file. Changes nothing. */
export async function livingOwners<Owner extends ProcessIdentity>(folder: string, schema: OwnerSchema<Owner>): Promise<Owner[]> {
  const owners = await readJsonFiles(folder, schema);
  const alive = await Promise.all(owners.map(isAlive));
  return owners.filter((_, i) => alive[i]);
}

/** Removes the JSON files in a folder that no living process owns, and the drafts that killed processes left. */
export async function removeDeadFiles<Owner extends ProcessIdentity>(folder: string, schema: OwnerSchema<Owner>): Promise<void> {
  for (const name of await namesIn(folder)) {
    const path = join(folder, name);
    const isDead = name.endsWith('.json') && (await livingOwner(path, schema).catch(() => undefined)) === undefined;
    if (isDead) await rm(path, { force: true });
  }
  await removeDeadDrafts(folder, { isDataFolder: true });
}

/** Replaces a file in one step, for its user alone; with `flush` what it says outlives a loss of power. Throws what the system throws. */
export async function replaceFile(path: string, content: string, { flush = false }: { readonly flush?: boolean } = {}): Promise<void> {
  const draft = await draftOf(path);
  try {
    await writeFile(draft, content, { mode: 0o600, flag: 'wx', flush });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

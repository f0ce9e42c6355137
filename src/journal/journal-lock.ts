import { rmSync, truncateSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { createWholeFile } from '../process/create-whole-file.js';
import { identifySelf, isAlive, processIdentitySchema } from '../process/process-identity.js';
import { systemCode } from '../process/system-code.js';
import { journalFailure } from './errors.js';
import { type FolderListing, type LockName, listJournalFolder, lockFile } from './journal-folder.js';

const holderSchema = processIdentitySchema.extend({ what: z.string(), since: z.iso.datetime() });

/** The process that writes a journal. */
export type JournalHolder = Readonly<z.infer<typeof holderSchema>>;

/** A journal that this process alone writes. */
export interface JournalLock {
  readonly owner: string;
  /** Gives a journal that still holds records free for the next process. Idempotent. */
  release(): void;
  /** Removes the locks of a journal whose files are gone. Idempotent. */
  remove(): void;
}

async function readHolder(folder: string, lock: LockName): Promise<JournalHolder | undefined> {
  try {
    return holderSchema.parse(JSON.parse(await readFile(join(folder, lock.file), 'utf8')));
  } catch {
    // Lock files appear with their whole content and lose it on release, so nobody is behind one that cannot be read.
    return undefined;
  }
}

/** The living process that holds a journal; undefined when it is free or its process has ended. */
export async function livingHolder(folder: string, owner: string, listing: FolderListing): Promise<JournalHolder | undefined> {
  const newest = listing.locks.findLast((lock) => lock.owner === owner);
  const holder = newest === undefined ? undefined : await readHolder(folder, newest);
  return holder !== undefined && (await isAlive(holder)) ? holder : undefined;
}

/** Swallowed where the folder is gone or read-only: then the end of this process frees the journal. */
function attempt(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
  }
}

function lockAt(folder: string, owner: string, generation: number): JournalLock {
  let held = true;
  const path = join(folder, lockFile(owner, generation));
  return {
    owner,
    release: () => {
      // The name stays, so that its generation cannot be taken once more.
      if (held) attempt(() => truncateSync(path));
      held = false;
    },
    remove: () => {
      if (!held) return;
      held = false;
      // Oldest first: whoever looks in between sees that the newest generation is taken.
      for (let old = 1; old <= generation; old++) attempt(() => rmSync(join(folder, lockFile(owner, old)), { force: true }));
    },
  };
}

/**
 * Locks a journal for this process; undefined when a living process has it. Each holder makes the generation after the newest, which only one can, and
 * none is removed before the journal's files are, so a generation is never taken twice while there is something to protect.
 */
export async function acquireJournalLock(
  folder: string,
  owner: string,
  what: string,
  listing: FolderListing,
): Promise<JournalLock | undefined> {
  if ((await livingHolder(folder, owner, listing)) !== undefined) return undefined;
  const generation = (listing.locks.findLast((lock) => lock.owner === owner)?.generation ?? 0) + 1;
  const holder: JournalHolder = { ...(await identifySelf()), what, since: new Date().toISOString() };
  const path = join(folder, lockFile(owner, generation));
  try {
    return (await createWholeFile(path, JSON.stringify(holder))) ? lockAt(folder, owner, generation) : undefined;
  } catch (error) {
    throw journalFailure('locking', path, error);
  }
}

/** Removes the locks of dead processes whose journals have no files any more. */
export async function sweepLocks(folder: string): Promise<void> {
  const listing = await listJournalFolder(folder);
  const needed = new Set(listing.segments.map(({ owner }) => owner));
  for (const owner of new Set(listing.locks.map((lock) => lock.owner))) {
    if (needed.has(owner) || (await livingHolder(folder, owner, listing)) !== undefined) continue;
    for (const lock of listing.locks) if (lock.owner === owner) await rm(join(folder, lock.file), { force: true });
  }
}

import { randomBytes } from 'node:crypto';
import { rmSync, truncateSync } from 'node:fs';
import { chmod, mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { createWholeFile } from '../process/owned-file.js';
import { identifySelf, isAlive, processIdentitySchema } from '../process/process-identity.js';
import { systemCode } from '../process/system-error.js';
import { journalFailure } from './errors.js';

/** The folder of the journals in a data folder. */
export const journalFolder = (dataDir: string): string => join(dataDir, 'journal');

/** One file of a journal. */
export interface SegmentName {
  readonly owner: string;
  readonly segment: number;
  readonly file: string;
}

/** One generation of a journal's lock. */
export interface LockName {
  readonly owner: string;
  readonly generation: number;
  readonly file: string;
}

/** What is in a journal folder. */
export interface FolderListing {
  /** By owner, then in the order they were written. */
  readonly segments: readonly SegmentName[];
  /** By owner, oldest generation first. */
  readonly locks: readonly LockName[];
}

const SEGMENT = /^(\d{6,15}-[0-9a-f]{8})-(\d{1,15})\.wal$/;
const LOCK = /^(\d{6,15}-[0-9a-f]{8})\.(\d{1,15})\.lock$/;

/** The file name of a segment of an owner's journal. */
export const segmentFile = (owner: string, segment: number): string => `${owner}-${segment}.wal`;
/** The file name of one generation of the lock of an owner's journal. */
export const lockFile = (owner: string, generation: number): string => `${owner}.${generation}.lock`;

/** Journals that are there at the same time are drained in the order they were begun, which is that of their owners' numbers. */
function compareOwners(a: string, b: string): number {
  return Number.parseInt(a, 10) - Number.parseInt(b, 10) || (a < b ? -1 : Number(a > b));
}

/** Lists a journal folder; one that does not exist is empty. */
export async function listJournalFolder(folder: string): Promise<FolderListing> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw journalFailure('listing', folder, error);
  });
  const segments: SegmentName[] = [];
  const locks: LockName[] = [];
  for (const file of names) {
    const [, owner, segment] = SEGMENT.exec(file) ?? [];
    if (owner !== undefined) segments.push({ owner, segment: Number(segment), file });
    const [, holder, generation] = LOCK.exec(file) ?? [];
    if (holder !== undefined) locks.push({ owner: holder, generation: Number(generation), file });
  }
  segments.sort((a, b) => compareOwners(a.owner, b.owner) || a.segment - b.segment);
  locks.sort((a, b) => compareOwners(a.owner, b.owner) || a.generation - b.generation);
  return { segments, locks };
}

/** The owners in a listing, oldest first. */
export function ownersIn({ segments, locks }: FolderListing): readonly string[] {
  return [...new Set([...segments, ...locks].map(({ owner }) => owner))].sort(compareOwners);
}

/** A name for a new journal: later than all that are there, and never used again. */
export function newOwner(listing: FolderListing): string {
  const newest = Math.max(0, ...ownersIn(listing).map((owner) => Number.parseInt(owner, 10)));
  return `${String(newest + 1).padStart(6, '0')}-${randomBytes(4).toString('hex')}`;
}

/** Makes the journal folder, for the user alone. */
export async function makeJournalFolder(dataDir: string): Promise<string> {
  const folder = journalFolder(dataDir);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
  } catch (error) {
    throw journalFailure('making the journal folder', folder, error);
  }
  return folder;
}

/** Makes the names in a folder outlive a loss of power. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

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

import { randomBytes } from 'node:crypto';
import { chmod, copyFile, link, mkdir, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { draftOf } from '../process/drafts.js';
import { flushFolder } from '../process/held-files.js';
import { acquireLock, type LockFile, livingLockOwner, lockFilesAmong } from '../process/lock.js';
import { namesIn, type OwnedFile, parseJson, textOf } from '../process/owned-file.js';
import { identifySelf, processIdentitySchema } from '../process/process-identity.js';
import { systemCode } from '../process/system-error.js';
import { journalFailure } from './errors.js';
import { noteFile } from './refused-note.js';

/** Returns the journal folder of a data folder. */
export const journalFolder = (dataDir: string): string => join(dataDir, 'journal');

/**
 * Returns the folder for damaged files that `palimpsest journal salvage --apply` has moved away.
 * Their records still count as lost.
 */
export const settledFolder = (dataDir: string): string => join(journalFolder(dataDir), 'settled');

/** One file of a journal. */
export interface SegmentName {
  readonly owner: string;
  readonly segment: number;
  readonly file: string;
}

/** The contents of a journal folder. */
export interface FolderListing {
  /** Sorted by owner, then in the order of writing. */
  readonly segments: readonly SegmentName[];
  /** The lock files of the journals, named after their owners; a lock's newest file is last. */
  readonly locks: readonly LockFile[];
  /** The damaged files set aside, with their original names. */
  readonly aside: readonly (SegmentName & { readonly original: string })[];
}

const SEGMENT = /^(\d{6,15}-[0-9a-f]{8})-(\d{1,15})\.wal$/;
const OWNER = /^\d{6,15}-[0-9a-f]{8}$/;

/** Returns the file name of a segment of an owner's journal. */
export const segmentFile = (owner: string, segment: number): string => `${owner}-${segment}.wal`;

/** A damaged file set aside: never delivered again, never removed by us. */
const ASIDE = /^(\d{6,15}-[0-9a-f]{8})-(\d{1,15})\.wal\.(?:\d+\.)?damaged$/;

/**
 * Sets a damaged file aside by giving it a second name. Does nothing if that was done before. With
 * `isChanged` the file is copied, because it is about to change. Throws system errors.
 */
export async function keepAside(path: string, { isChanged }: { readonly isChanged: boolean }): Promise<void> {
  const { ino } = await stat(path);
  const source = isChanged ? await draftOf(path) : path;
  try {
    if (isChanged) await copyFile(path, source);
    for (let n = 1; ; n++) {
      const name = n === 1 ? `${path}.damaged` : `${path}.${n}.damaged`;
      try {
        return await link(source, name);
      } catch (error) {
        if (systemCode(error) !== 'EEXIST') throw error;
        if ((await stat(name)).ino === ino) return;
      }
    }
  } finally {
    if (isChanged) await rm(source, { force: true });
  }
}

/**
 * Orders journals by the number of their owner, which is the order of their creation and of
 * delivery.
 */
function compareOwners(a: string, b: string): number {
  return Number.parseInt(a, 10) - Number.parseInt(b, 10) || (a < b ? -1 : Number(a > b));
}

/** Lists a journal folder; a missing folder counts as empty. */
export async function listJournalFolder(folder: string): Promise<FolderListing> {
  const names = await namesIn(folder).catch((error: unknown) => {
    throw journalFailure('listing', folder, error);
  });
  const segments = names.flatMap((file) => {
    const [, owner, segment] = SEGMENT.exec(file) ?? [];
    return owner === undefined ? [] : [{ owner, segment: Number(segment), file }];
  });
  segments.sort((a, b) => compareOwners(a.owner, b.owner) || a.segment - b.segment);
  const aside = names.flatMap((file) => {
    const [, owner, segment] = ASIDE.exec(file) ?? [];
    return owner === undefined
      ? []
      : [{ owner, segment: Number(segment), file, original: segmentFile(owner, Number(segment)) }];
  });
  return { segments, aside, locks: lockFilesAmong(folder, names).filter(({ name }) => OWNER.test(name)) };
}

/** Returns the owners in a listing, oldest first. */
export function ownersIn({ segments, locks }: FolderListing): readonly string[] {
  return [...new Set([...segments.map(({ owner }) => owner), ...locks.map(({ name }) => name)])].sort(compareOwners);
}

/** Returns a unique name for a new journal. It sorts after all existing names. */
export function newOwner(listing: FolderListing): string {
  const newest = Math.max(0, ...ownersIn(listing).map((owner) => Number.parseInt(owner, 10)));
  return `${String(newest + 1).padStart(6, '0')}-${randomBytes(4).toString('hex')}`;
}

/** Creates the journal folder for this user only. */
export async function makeJournalFolder(dataDir: string): Promise<string> {
  const folder = journalFolder(dataDir);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
  } catch (error) {
    throw journalFailure('creating the journal folder', folder, error);
  }
  return folder;
}

/** Flushes the names in a folder, so that they survive a power loss. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await flushFolder(handle);
  } finally {
    await handle.close();
  }
}

const writerSchema = processIdentitySchema.extend({ what: z.string(), since: z.iso.datetime() });

/** The process that writes a journal. */
export type JournalWriter = Readonly<z.infer<typeof writerSchema>>;

/** Returns the living process that writes a journal; undefined if it has ended. */
export function livingWriter(owner: string, { locks }: FolderListing): Promise<JournalWriter | undefined> {
  return livingLockOwner(
    locks.filter(({ name }) => name === owner),
    writerSchema,
  );
}

/** Returns the last process that wrote a journal, alive or dead; undefined if no lock names one. */
export async function lastWriter(owner: string, { locks }: FolderListing): Promise<JournalWriter | undefined> {
  for (const { path } of locks.filter(({ name }) => name === owner).toReversed()) {
    const text = await textOf(path);
    const writer = text === undefined ? undefined : parseJson(text, writerSchema);
    if (writer !== undefined) return writer;
  }
  return undefined;
}

/**
 * Locks a journal for this process. Returns undefined if another process has it. Older lock files
 * stay until the journal's files are removed, so no lock file is created a second time.
 * `vacate` leaves a journal with records to the next process; `remove` ends a journal without
 * files.
 *
 * @throws {JournalError} unwritable, no-space, io – the lock file could not be created
 */
export async function lockJournal(folder: string, owner: string, what: string): Promise<OwnedFile | undefined> {
  const mine: JournalWriter = { ...(await identifySelf()), what, since: new Date().toISOString() };
  try {
    const lock = await acquireLock({ folder, name: owner, schema: writerSchema }, mine, { keepsOlder: true });
    return 'heldBy' in lock ? undefined : lock;
  } catch (error) {
    throw journalFailure('locking the journal', join(folder, owner), error);
  }
}

/**
 * Removes the locks of dead processes whose journals have no files left. Also removes the lists of
 * refused records beside these journals.
 */
export async function sweepLocks(folder: string): Promise<void> {
  const listing = await listJournalFolder(folder);
  const needed = new Set(listing.segments.map(({ owner }) => owner));
  for (const owner of new Set(listing.locks.map(({ name }) => name))) {
    if (needed.has(owner) || (await livingWriter(owner, listing)) !== undefined) continue;
    await rm(noteFile(folder, owner), { force: true });
    for (const { name, path } of listing.locks) if (name === owner) await rm(path, { force: true });
  }
}

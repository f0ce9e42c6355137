import { rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { corruptError, type JournalDamage, JournalError, journalFailure } from './errors.js';
import { Journal, type JournalOptions } from './journal.js';
import {
  type JournalWriter,
  journalFolder,
  listJournalFolder,
  livingWriter,
  lockJournal,
  makeJournalFolder,
  newOwner,
  ownersIn,
  segmentFile,
  sweepLocks,
  syncFolder,
} from './journal-folder.js';
import { type JournalScan, judgeJournal, readJournal } from './read-journal.js';

/** How a dead process's journal is taken over. */
export interface AdoptOptions extends JournalOptions {
  /** Takes what can be read of a damaged journal; its damaged files stay in the folder, named `.damaged`. */
  readonly salvage?: boolean;
}

const WHAT = 'palimpsest';

/**
 * Begins a journal for this process, in `<dataDir>/journal`; no file of records is made before the first one.
 * @throws {JournalError} `unwritable`, `no-space` or `io`
 */
export async function openJournal(dataDir: string, options: JournalOptions = {}): Promise<Journal> {
  const folder = await makeJournalFolder(dataDir);
  if (options.durability === 'power') await syncFolder(dataDir);
  await sweepLocks(folder);
  for (;;) {
    const owner = newOwner(await listJournalFolder(folder));
    const lock = await lockJournal(folder, owner, options.what ?? WHAT);
    if (lock !== undefined) return new Journal({ folder, owner, lock, found: judgeJournal(folder, []) }, options);
  }
}

/** The journals that dead processes left behind, in the order in which they are to be drained. Changes nothing. */
export async function adoptableJournals(dataDir: string): Promise<readonly string[]> {
  const folder = journalFolder(dataDir);
  const listing = await listJournalFolder(folder);
  const withFiles = new Set(listing.segments.map(({ owner }) => owner));
  const adoptable: string[] = [];
  for (const owner of ownersIn(listing)) {
    if (withFiles.has(owner) && (await livingWriter(owner, listing)) === undefined) adoptable.push(owner);
  }
  return adoptable;
}

/** Removes what was never acknowledged from the ends of files. A file that is corrupt besides stays as it is. */
async function cutTails(folder: string, owner: string, { cuts, corruptSegments }: JournalScan): Promise<void> {
  for (const [segment, length] of cuts) {
    if (corruptSegments.has(segment)) continue;
    const path = join(folder, segmentFile(owner, segment));
    try {
      if (length === 0) await rm(path);
      else await truncate(path, length);
    } catch (error) {
      throw journalFailure('cutting', path, error);
    }
  }
}

/**
 * Takes over the journal of a dead process (decision F6): `recover` gives what waits in it, and once all is marked done `close` removes it.
 * A torn tail is cut off and reported in `damage`. Undefined when a living process has the journal, or when it is gone.
 * @throws {JournalError} `corrupt` for damage in the middle unless `salvage` is set, `newer-format` for a journal of a later version
 */
export async function adoptJournal(dataDir: string, owner: string, options: AdoptOptions = {}): Promise<Journal | undefined> {
  const folder = journalFolder(dataDir);
  const lock = await lockJournal(folder, owner, options.what ?? WHAT);
  if (lock === undefined) return undefined;
  try {
    const listing = await listJournalFolder(folder);
    if (!listing.segments.some((segment) => segment.owner === owner)) {
      lock.remove();
      return undefined;
    }
    const found = await readJournal(folder, owner, listing);
    if (found.corrupt.length > 0 && options.salvage !== true) throw corruptError(owner, found.corrupt);
    await cutTails(folder, owner, found);
    return new Journal({ folder, owner, lock, found }, options);
  } catch (error) {
    lock.vacate();
    throw error;
  }
}

/**
 * The state of a journal's files. `sound`, also where a living process is just writing; `torn`: the end of the last write of a dead process is missing,
 * which loses nothing; `corrupt`: records that were acknowledged cannot be read; `newer-format`; `unreadable`.
 */
export type JournalState = 'sound' | 'torn' | 'corrupt' | 'newer-format' | 'unreadable';

/** A journal seen from outside. */
export interface InspectedJournal {
  readonly owner: string;
  /** The living process that writes it; undefined when it has ended. */
  readonly holder: JournalWriter | undefined;
  readonly state: JournalState;
  /** Records that are not known to be in the database, as far as they can be read. */
  readonly pending: number;
  readonly pendingBytes: number;
  /** When the oldest of them was acknowledged, milliseconds since 1970; undefined when none waits. */
  readonly oldestAt: number | undefined;
  readonly damage: readonly JournalDamage[];
  /** Why the journal cannot be read, with `newer-format` and `unreadable`. */
  readonly reason: string | undefined;
}

/** Every journal of a data folder, oldest first, without changing anything. */
export async function inspectJournals(dataDir: string): Promise<readonly InspectedJournal[]> {
  const folder = journalFolder(dataDir);
  const listing = await listJournalFolder(folder);
  const journals: InspectedJournal[] = [];
  for (const owner of ownersIn(listing)) {
    const holder = await livingWriter(owner, listing);
    // A living process removes files while they are looked at.
    const fresh = holder === undefined ? listing : await listJournalFolder(folder);
    if (holder === undefined && !fresh.segments.some((segment) => segment.owner === owner)) continue;
    try {
      const { waiting, torn, corrupt } = await readJournal(folder, owner, fresh);
      const isTorn = torn.length > 0 && holder === undefined;
      journals.push({
        owner,
        holder,
        state: corrupt.length > 0 ? 'corrupt' : isTorn ? 'torn' : 'sound',
        pending: waiting.length,
        pendingBytes: waiting.reduce((sum, { bytes }) => sum + bytes, 0),
        oldestAt: waiting[0]?.at,
        damage: isTorn ? [...torn, ...corrupt] : corrupt,
        reason: undefined,
      });
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      const state = error.code === 'newer-format' ? 'newer-format' : 'unreadable';
      journals.push({ owner, holder, state, pending: 0, pendingBytes: 0, oldestAt: undefined, damage: [], reason: error.message });
    }
  }
  return journals;
}

import { mkdir, readFile, rename, rm, truncate } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type JournalDamage, JournalError, type JournalLoss, journalFailure } from './errors.js';
import { frameSalt } from './frame.js';
import { Journal, type JournalOptions } from './journal.js';
import {
  type JournalWriter,
  journalFolder,
  keepAside,
  listJournalFolder,
  livingWriter,
  lockJournal,
  makeJournalFolder,
  newOwner,
  ownersIn,
  segmentFile,
  settledFolder,
  sweepLocks,
  syncFolder,
} from './journal-folder.js';
import { type JournalRecord, type JournalScan, judgeJournal, readJournal, readRecords } from './read-journal.js';
import { noteFile, type RefusedRecords, readRefused } from './refused-note.js';
import { scanSegment } from './segment-format.js';

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

/** The journals of a data folder that have files, by whether their processes live. */
export interface JournalOwners {
  /** Those that dead processes left behind, in the order in which they are to be drained. */
  readonly left: readonly string[];
  readonly living: readonly JournalWriter[];
}

/** Whose the journals of a data folder are. Changes nothing. */
export async function journalOwners(dataDir: string): Promise<JournalOwners> {
  const folder = journalFolder(dataDir);
  const listing = await listJournalFolder(folder);
  const withFiles = new Set(listing.segments.map(({ owner }) => owner));
  const left: string[] = [];
  const living: JournalWriter[] = [];
  for (const owner of ownersIn(listing)) {
    if (!withFiles.has(owner)) continue;
    const writer = await livingWriter(owner, listing);
    if (writer === undefined) left.push(owner);
    else living.push(writer);
  }
  return { left, living };
}

/** The journals that dead processes left behind, in the order in which they are to be drained. Changes nothing. */
export async function adoptableJournals(dataDir: string): Promise<readonly string[]> {
  return (await journalOwners(dataDir)).left;
}

/**
 * Keeps what is damaged aside, and removes what is no record from the ends of files, after a copy where it may have been one. A file that is damaged in its middle
 * stays as it is until it is drained.
 */
async function settleDamage(folder: string, owner: string, { cuts, corruptSegments }: JournalScan): Promise<void> {
  for (const segment of new Set([...corruptSegments, ...cuts.keys()])) {
    const path = join(folder, segmentFile(owner, segment));
    const cut = cuts.get(segment);
    const isCut = cut !== undefined && !corruptSegments.has(segment);
    try {
      if (!isCut || cut.keepsCopy) await keepAside(path, { isChanged: isCut });
      if (isCut && cut.length === 0) await rm(path);
      else if (isCut) await truncate(path, cut.length);
    } catch (error) {
      throw journalFailure('keeping aside', path, error);
    }
  }
}

/**
 * Takes over the journal of a dead process (decision F6): `recover` gives what waits in it and can be read, and once all is marked done `close` removes it.
 * What cannot be read is reported in `damage` and `loss`; a damaged file stays in the folder, named `.damaged` (decision 0011). Undefined when a living process
 * has the journal, or when it is gone.
 * @throws {JournalError} `newer-format` for a journal of a later version
 */
export async function adoptJournal(dataDir: string, owner: string, options: JournalOptions = {}): Promise<Journal | undefined> {
  const folder = journalFolder(dataDir);
  const lock = await lockJournal(folder, owner, options.what ?? WHAT);
  if (lock === undefined) return undefined;
  try {
    const listing = await listJournalFolder(folder);
    if (!listing.segments.some((segment) => segment.owner === owner)) {
      await rm(noteFile(folder, owner), { force: true });
      lock.remove();
      return undefined;
    }
    const found = await readJournal(folder, owner, listing);
    await settleDamage(folder, owner, found);
    return new Journal({ folder, owner, lock, found }, options);
  } catch (error) {
    lock.vacate();
    throw error;
  }
}

/** How many damaged files are kept in a data folder, settled or not: each may have held the last word on some session. */
export async function damagedFiles(dataDir: string): Promise<number> {
  const [{ aside }, settled] = await Promise.all([listJournalFolder(journalFolder(dataDir)), listJournalFolder(settledFolder(dataDir))]);
  return aside.length + settled.aside.length;
}

/** A damaged file that is kept aside, and what cannot be read of it. */
export interface AsideFile {
  readonly path: string;
  readonly damage: readonly JournalDamage[];
  readonly loss: JournalLoss;
}

/** The damaged files that nobody has settled yet. Changes nothing. */
export async function asideFiles(dataDir: string): Promise<readonly AsideFile[]> {
  const folder = journalFolder(dataDir);
  const { aside } = await listJournalFolder(folder);
  return Promise.all(
    aside.map(async ({ original, ...name }) => {
      const path = join(folder, name.file);
      const scan = scanSegment(await readFile(path), frameSalt(original));
      const { corrupt, loss } = judgeJournal(folder, 'newerFormat' in scan ? [] : [{ ...name, scan }]);
      return { path, damage: corrupt, loss };
    }),
  );
}

/** Puts damaged files where they no longer make the data folder unhealthy; they stay as they are. Gives their new paths. */
export async function settleAside(dataDir: string): Promise<readonly string[]> {
  const folder = settledFolder(dataDir);
  const files = await asideFiles(dataDir);
  if (files.length > 0) await mkdir(folder, { recursive: true, mode: 0o700 });
  const moved: string[] = [];
  for (const { path } of files) {
    const target = join(folder, basename(path));
    await rename(path, target);
    moved.push(target);
  }
  return moved;
}

/** Every record of a journal that can be read, also those that the database has, in order. Changes nothing; throws as `adoptJournal`. */
export async function* readableRecords(dataDir: string, owner: string): AsyncGenerator<JournalRecord> {
  const folder = journalFolder(dataDir);
  const { readable } = await readJournal(folder, owner, await listJournalFolder(folder));
  yield* readRecords({ folder, owner }, readable, () => true);
}

/** The records of a journal that are not known to be in the database, as far as they can be read, in order. Changes nothing; throws as `adoptJournal`. */
export async function* waitingRecords(dataDir: string, owner: string): AsyncGenerator<JournalRecord> {
  const folder = journalFolder(dataDir);
  const { waiting } = await readJournal(folder, owner, await listJournalFolder(folder));
  yield* readRecords({ folder, owner }, waiting, () => true);
}

/**
 * The state of a journal's files. `sound`, also where a living process is just writing; `torn`: the end of the last write of a dead process is missing,
 * which loses nothing; `corrupt`: records that were acknowledged cannot be read; `newer-format`; `unreadable`.
 */
export type JournalState = 'sound' | 'torn' | 'corrupt' | 'newer-format' | 'unreadable';

const BROKEN: ReadonlySet<JournalState> = new Set(['corrupt', 'newer-format', 'unreadable']);

/** Whether something that was acknowledged cannot be read of a journal, or may not be. */
export const isBrokenJournal = ({ state }: Pick<InspectedJournal, 'state'>): boolean => BROKEN.has(state);

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
  readonly loss: JournalLoss;
  /** What of it the database refused for good, by session. */
  readonly refused: readonly RefusedRecords[];
  /** Why the journal cannot be read, with `newer-format` and `unreadable`. */
  readonly reason: string | undefined;
}

/** Every journal of a data folder, oldest first, but for those that are passed over. Changes nothing. */
export async function inspectJournals(
  dataDir: string,
  { except = new Set() }: { readonly except?: ReadonlySet<string> } = {},
): Promise<readonly InspectedJournal[]> {
  const folder = journalFolder(dataDir);
  const listing = await listJournalFolder(folder);
  const journals: InspectedJournal[] = [];
  for (const owner of ownersIn(listing).filter((name) => !except.has(name))) {
    const holder = await livingWriter(owner, listing);
    // A living process removes files while they are looked at.
    const fresh = holder === undefined ? listing : await listJournalFolder(folder);
    if (holder === undefined && !fresh.segments.some((segment) => segment.owner === owner)) continue;
    try {
      const { waiting, torn, corrupt, loss } = await readJournal(folder, owner, fresh);
      const isTorn = torn.length > 0 && holder === undefined;
      journals.push({
        owner,
        holder,
        state: corrupt.length > 0 ? 'corrupt' : isTorn ? 'torn' : 'sound',
        pending: waiting.length,
        pendingBytes: waiting.reduce((sum, { bytes }) => sum + bytes, 0),
        oldestAt: waiting[0]?.at,
        damage: isTorn ? [...torn, ...corrupt] : corrupt,
        loss,
        refused: waiting.length === 0 ? [] : await readRefused(folder, owner),
        reason: undefined,
      });
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      const state = error.code === 'newer-format' ? 'newer-format' : 'unreadable';
      const nothing = {
        pending: 0,
        pendingBytes: 0,
        oldestAt: undefined,
        damage: [],
        loss: { records: [], isUncounted: false },
        refused: [],
      };
      journals.push({ owner, holder, state, ...nothing, reason: error.message });
    }
  }
  return journals;
}

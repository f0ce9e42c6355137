import { mkdir, readFile, rm, truncate } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { rename } from '../process/held-files.js';
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
 * Creates a journal for this process in `<dataDir>/journal`. Its first file is created with the
 * first record.
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

/** The journals with files in a data folder, by whether their processes live. */
export interface JournalOwners {
  /** Journals of dead processes, in order of delivery. */
  readonly left: readonly string[];
  readonly living: readonly JournalWriter[];
}

/** Returns the owners of a data folder's journals. Read-only. */
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

/** Returns the journals of dead processes, in order of delivery. Read-only. */
export async function adoptableJournals(dataDir: string): Promise<readonly string[]> {
  return (await journalOwners(dataDir)).left;
}

/**
 * Sets damaged files aside and cuts invalid ends off. An end that may have been a record is copied
 * first. A file damaged in its middle is unchanged until it is delivered.
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
 * Takes over the journal of a dead process (decision F6). `recover` yields its readable waiting
 * records. Once all are marked done, `close` removes the journal. Unreadable parts are reported in
 * `damage` and `loss`; a damaged file stays in the folder as `.damaged` (decision 0011). Returns
 * undefined if a living process has the journal, or if it is gone.
 * @throws {JournalError} `newer-format` for a journal of a later version
 */
export async function adoptJournal(
  dataDir: string,
  owner: string,
  options: JournalOptions = {},
): Promise<Journal | undefined> {
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

/**
 * Returns the number of damaged files kept in a data folder, archived or not. Each may have
 * contained the last record of a session.
 */
export async function damagedFiles(dataDir: string): Promise<number> {
  const [{ aside }, settled] = await Promise.all([
    listJournalFolder(journalFolder(dataDir)),
    listJournalFolder(settledFolder(dataDir)),
  ]);
  return aside.length + settled.aside.length;
}

/** A damaged file set aside, and its unreadable parts. */
export interface AsideFile {
  readonly path: string;
  readonly damage: readonly JournalDamage[];
  readonly loss: JournalLoss;
}

/** Returns the damaged files that are not archived yet. Read-only. */
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

/**
 * Archives damaged files: moves them, unchanged, to the folder `settled`, where they are no longer
 * a problem. Returns their new paths.
 */
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

/**
 * Yields every readable record of a journal in order, including those in the database. Read-only;
 * throws like `adoptJournal`.
 */
export async function* readableRecords(dataDir: string, owner: string): AsyncGenerator<JournalRecord> {
  const folder = journalFolder(dataDir);
  const { readable } = await readJournal(folder, owner, await listJournalFolder(folder));
  yield* readRecords({ folder, owner }, readable, () => true);
}

/**
 * Yields the readable records of a journal that are not known to be in the database, in order.
 * Read-only; throws like `adoptJournal`.
 */
export async function* waitingRecords(dataDir: string, owner: string): AsyncGenerator<JournalRecord> {
  const folder = journalFolder(dataDir);
  const { waiting } = await readJournal(folder, owner, await listJournalFolder(folder));
  yield* readRecords({ folder, owner }, waiting, () => true);
}

/**
 * The state of a journal's files. `sound`: undamaged, even while a living process writes. `torn`:
 * the end of a dead process's last write is missing, which loses nothing. `corrupt`: acknowledged
 * records are unreadable. `newer-format`: written by a later version. `unreadable`: a system error.
 */
export type JournalState = 'sound' | 'torn' | 'corrupt' | 'newer-format' | 'unreadable';

const BROKEN: ReadonlySet<JournalState> = new Set(['corrupt', 'newer-format', 'unreadable']);

/** Returns whether acknowledged records of a journal are, or may be, unreadable. */
export const isBrokenJournal = ({ state }: Pick<InspectedJournal, 'state'>): boolean => BROKEN.has(state);

/** A read-only view of a journal. */
export interface InspectedJournal {
  readonly owner: string;
  /** The living process that writes it; undefined if it has ended. */
  readonly holder: JournalWriter | undefined;
  readonly state: JournalState;
  /** Readable records that are not known to be in the database. */
  readonly pending: number;
  readonly pendingBytes: number;
  /** When the oldest of them was acknowledged, milliseconds since 1970; undefined if none waits. */
  readonly oldestAt: number | undefined;
  readonly damage: readonly JournalDamage[];
  readonly loss: JournalLoss;
  /** Its records that the database refused permanently, by session. */
  readonly refused: readonly RefusedRecords[];
  /** Why the journal cannot be read, with `newer-format` and `unreadable`. */
  readonly reason: string | undefined;
}

/** Returns every journal of a data folder, oldest first, except those in `except`. Read-only. */
export async function inspectJournals(
  dataDir: string,
  { except = new Set() }: { readonly except?: ReadonlySet<string> } = {},
): Promise<readonly InspectedJournal[]> {
  const folder = journalFolder(dataDir);
  const listing = await listJournalFolder(folder);
  const journals: InspectedJournal[] = [];
  for (const owner of ownersIn(listing).filter((name) => !except.has(name))) {
    const holder = await livingWriter(owner, listing);
    // List the files of a living process again, because it removes some meanwhile.
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

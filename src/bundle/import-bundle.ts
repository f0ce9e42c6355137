import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { RecordMask } from '../client/record-mask.js';
import { acquireSessionLock, IMPORTER, type SessionLock } from '../journal/session-lock.js';
import { ERASURE_LOCK, ERASURES, PENDING_ORDER } from '../node/erasure-sign.js';
import { TIME_LIMITS } from '../node/time-limits.js';
import { type SessionId, sessionId, sessionObjectId } from '../objects/ids.js';
import { LockError, withNamedLock } from '../process/lock.js';
import { type ImportedTransaction, type ImportState, importId, toImportPart } from '../store/import-parts.js';
import { ALWAYS, type ObjectStore } from '../store/object-store.js';
import { asImported, ofSession } from '../store/session-line.js';
import { defined } from '../values/defined.js';
import type { TxOp } from '../xtdb/transactions.js';
import { BundleError } from './bundle-error.js';
import type { BundleHeader } from './bundle-lines.js';
import { BundleWriter } from './bundle-writer.js';
import { type CheckedBundle, type CheckedPut, type CheckedTransaction, checkBundle } from './check-bundle.js';
import { compareWithDatabase, type HeldVersions, heldVersions, importedKey } from './find-conflicts.js';
import type { BundleLimits } from './read-bundle.js';
import { stageBundle, stagedBlocks, stagedHeader } from './staged-import.js';

/** A folder or filesystem of the machine that recorded the session, with its local counterpart. */
type ImportedPlace = ImportState['folders'][number];

/** Options for importing a bundle. */
export interface ImportOptions {
  /** The folder in which this database's clients keep their locks. */
  readonly clientDir: string;
  /**
   * Local counterparts of folders and filesystems of the machine that recorded the session. They
   * are stored with the session; no document is rewritten.
   */
  readonly folders?: readonly ImportedPlace[];
  readonly filesystems?: readonly ImportedPlace[];
  readonly limits?: BundleLimits;
  /** Finds secrets. A bundle with a secret is rejected. Default: no check. */
  readonly mask?: RecordMask;
  /** Called with the number of transactions written so far. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** The result of an import. */
export interface ImportedBundle {
  readonly session: SessionId;
  readonly turn: number;
  readonly step: number;
  readonly sessions: readonly string[];
  /** False if the database already held the whole bundle. */
  readonly isNew: boolean;
  /** Whether the import changed the stored folders and filesystems of an existing session. */
  readonly isRemapped: boolean;
  readonly bundle: CheckedBundle;
}

/**
 * Waits until no erasure runs. The import does not write texts that the database has, and an
 * erasure could remove such a text. Erasures that start later fail, because the import holds its
 * sessions' locks.
 *
 * @throws {BundleError} `erasing` – an erasure was interrupted, or takes longer than an import
 *   waits
 */
async function afterErasures(clientDir: string): Promise<void> {
  if (!existsSync(join(clientDir, ERASURES))) return;
  try {
    await withNamedLock(join(clientDir, ERASURE_LOCK), { limitMs: TIME_LIMITS.lockMs }, async () => undefined);
  } catch (cause) {
    if (!(cause instanceof LockError)) throw cause;
    throw new BundleError('erasing', `${cause.message}: nothing was imported. Import again later`, { cause });
  }
  if (!existsSync(join(clientDir, PENDING_ORDER))) return;
  throw new BundleError(
    'erasing',
    'an erasure of this data folder was interrupted: nothing was imported. ' +
      'Finish it with palimpsest erase --resume, then import again',
  );
}

/**
 * Locks some sessions and returns the function that unlocks them.
 * @throws {BundleError} `erasing`
 */
async function lockSessions(clientDir: string, sessions: readonly string[]): Promise<() => void> {
  const locks: SessionLock[] = [];
  const unlock = (): void => {
    for (const lock of locks) lock.release();
  };
  try {
    for (const name of sessions) locks.push(await acquireSessionLock(clientDir, sessionId(name), { what: IMPORTER }));
    await afterErasures(clientDir);
    return unlock;
  } catch (error) {
    unlock();
    throw error;
  }
}

const placesOf = (state: ImportState | undefined): object => ({
  folders: state?.folders ?? [],
  filesystems: state?.filesystems ?? [],
});

/** The part of a bundle that an interrupted import has written. */
interface Begun {
  readonly here: readonly number[];
  /** The keys of the written versions. */
  readonly keys: ReadonlySet<string>;
  readonly transactions: readonly ImportedTransaction[];
}

/**
 * Returns whether a bundle begins with the transactions that an interrupted import of another
 * bundle wrote. If so, the import continues after them.
 */
function isBeginning(arrived: readonly ImportedTransaction[], transactions: readonly CheckedTransaction[]): boolean {
  return (
    arrived.length > 0 &&
    arrived.every(({ tx, time, puts }, i) => {
      const other = transactions[i];
      const bundled = other && {
        tx: other.tx,
        time: Date.parse(other.time),
        puts: other.puts.map(({ id, validTime }) => [id, validTime]),
      };
      return isDeepStrictEqual(bundled, { tx, time, puts });
    })
  );
}

async function begunImport(store: ObjectStore, session: SessionId): Promise<Begun> {
  const { documents } = await store.latest();
  const ids: string[] = [];
  const keys = new Set<string>();
  const transactions: ImportedTransaction[] = [];
  for await (const { number, ...transaction } of documents.importedTransactions(session)) {
    const { puts } = transaction;
    ids.push(importId(session, number));
    transactions.push(transaction);
    for (const [id, validTime] of puts) keys.add(importedKey(id, validTime));
  }
  return { here: (await documents.places(ids)).map(({ txId }) => txId), keys, transactions };
}

/** Returns the sessions whose import is not complete. */
async function arriving(store: ObjectStore, sessions: readonly string[]): Promise<readonly string[]> {
  const { documents } = await store.latest();
  const are = await Promise.all(sessions.map((name) => documents.isArriving(name)));
  return sessions.filter((_, i) => are[i]);
}

/** Returns the operations that mark sessions as being imported or as imported. */
function stateOps(
  sessions: readonly string[],
  session: SessionId,
  { state, isWhole }: { readonly state: ImportState; readonly isWhole: boolean },
): readonly TxOp[] {
  return sessions.map((name) => {
    const own = name === session ? state : { ...state, transactions: 0 };
    return { op: 'put', doc: toImportPart(sessionId(name), own, isWhole), validTime: ALWAYS };
  });
}

/**
 * Adds to the import's state the files whose versions it keeps private to its sessions. Returns the
 * same object if it has them all.
 */
function withLine(state: ImportState, { lined }: HeldVersions): ImportState {
  const { line } = state;
  const fresh = lined.filter((id) => line?.files.includes(id) !== true);
  return line === undefined || fresh.length === 0
    ? state
    : { ...state, line: { ...line, files: [...line.files, ...fresh] } };
}

/** Stores which files an interrupted import keeps private to its sessions. */
async function recordLine(
  store: ObjectStore,
  { header, state }: Pick<StagedImport, 'header' | 'state'>,
): Promise<void> {
  const owned = await arriving(store, header.sessions);
  const ops = stateOps(owned, sessionId(header.session), { state, isWhole: false });
  await store.writes.write('.import', async () => ({ ops, result: undefined }));
}

/** An import whose remaining transactions are staged. */
interface StagedImport {
  readonly header: BundleHeader;
  readonly state: ImportState;
  readonly held: HeldVersions;
  readonly begun: Begun;
}

/** Writes the staged transactions and then marks the sessions as imported. */
async function writeStaged(
  store: ObjectStore,
  { header, state: { staged = [], ...state }, held, begun }: StagedImport,
  { onProgress }: Pick<ImportOptions, 'onProgress'>,
): Promise<void> {
  const session = sessionId(header.session);
  const writer = new BundleWriter(store, session, { held, here: begun.here, line: state.line?.files ?? [] });
  for await (const block of stagedBlocks(store, staged)) {
    await writer.write(block);
    onProgress?.(block.transaction.number, header.transactions);
  }
  const owned = await arriving(store, header.sessions);
  await store.writes.write('.import', async () => ({
    ops: stateOps(owned, session, { state, isWhole: true }),
    result: undefined,
  }));
  await store.keepPages(session, { upto: header.step, ready: async () => undefined });
}

/** An interrupted import after it was finished. */
export type FinishedImport = Pick<BundleHeader, 'session' | 'turn' | 'step' | 'sessions' | 'transactions'>;

/**
 * Finishes an interrupted import from its staged data, without the file. Files with newer versions
 * in the database stay as they are.
 *
 * @throws {BundleError} `nothing-to-finish`
 * @throws {LeaseError} `held` if a process is importing the session
 * @throws {StoreError} `missing-part`, `corrupt-part`
 * @throws {XtdbError}
 */
export async function finishImport(
  store: ObjectStore,
  name: SessionId,
  { clientDir, onProgress }: Pick<ImportOptions, 'clientDir' | 'onProgress'>,
): Promise<FinishedImport> {
  const named = await (await store.latest()).documents.importOf(name);
  if (named?.isWhole !== false)
    throw new BundleError(
      'nothing-to-finish',
      named === undefined
        ? `no import of session ${name} has stored enough to be finished: import its file again`
        : `session ${name} is complete: its import needs no finishing`,
    );
  if (named.staged === undefined)
    throw new BundleError(
      'nothing-to-finish',
      `the import of session ${name} was begun by an earlier version: import the same file again`,
    );
  const header = await stagedHeader(store, named.staged);
  const unlock = await lockSessions(clientDir, header.sessions);
  try {
    const { documents } = await store.latest();
    const session = sessionId(header.session);
    const state = await documents.importOf(session);
    if (state?.isWhole === false) {
      const { isWhole: _, ...recorded } = state;
      const begun = await begunImport(store, session);
      const puts: CheckedPut[] = [];
      for await (const { transaction } of stagedBlocks(store, named.staged)) puts.push(...transaction.puts);
      const { held } = await heldVersions(puts, { documents, sessions: header.sessions, written: begun.keys });
      const lined = withLine(recorded, held);
      if (lined !== recorded) await recordLine(store, { header, state: lined });
      await writeStaged(store, { header, state: lined, held, begun }, defined({ onProgress }));
    }
    const { turn, step, sessions, transactions } = header;
    return { session, turn, step, sessions, transactions };
  } finally {
    unlock();
  }
}

/**
 * Imports a bundle. First checks the whole bundle, and then stages all of it. An interruption
 * before that leaves nothing visible. After that, an interrupted import can be finished without the
 * file.
 *
 * Valid times do not change. Each transaction of the bundle becomes a transaction of this database,
 * in the same order. The original numbers and times are kept (decision 0019). The session is
 * invisible until the last transaction.
 *
 * Importing the same file again continues an interrupted import, like `finishImport`. If the
 * database has the whole bundle, only local folders and filesystems from the options are stored.
 *
 * @throws {BundleError}
 * @throws {LeaseError} `held` if a process has the session open
 * @throws {StoreError} `conflict`
 * @throws {XtdbError}
 */
export async function importBundle(store: ObjectStore, file: string, options: ImportOptions): Promise<ImportedBundle> {
  const { clientDir, folders = [], filesystems = [], limits = {}, mask, onProgress } = options;
  const bundle = await checkBundle(file, limits, mask);
  const { header, manifest, transactions } = bundle;
  const session = sessionId(header.session);
  const unlock = await lockSessions(clientDir, header.sessions);
  try {
    const own = await ofSession(await store.latest(), session);
    // Compares with the session as it was imported, without what was added here.
    const { documents } = asImported(own);
    const before = await own.documents.importOf(session);
    const isBegun = before?.isWhole === false;
    const begun: Begun = isBegun ? await begunImport(store, session) : { here: [], keys: new Set(), transactions: [] };
    const isOther = isBegun && before.sha256 !== manifest.sha256;
    if (isOther && !isBeginning(begun.transactions, transactions))
      throw new BundleError(
        'conflict',
        `an interrupted import of session ${session} from another bundle exists. This bundle does not begin ` +
          `with its data, and nothing was changed. Get the rest with palimpsest import --finish ${session}`,
      );
    const held = await compareWithDatabase(bundle, documents, begun.keys);
    const { turn, step, sessions } = header;
    const answer = { session, turn, step, sessions, bundle };
    const kept = { of: session, files: [], epochs: Object.fromEntries(bundle.epochs) };
    let state: ImportState = {
      sha256: manifest.sha256,
      transactions: transactions.length,
      folders: [...folders],
      filesystems: [...filesystems],
      line: before?.line ?? kept,
      ...defined({ redacted: manifest.redacted }),
    };
    if (held.isAll && !isBegun) {
      const isRemapped =
        folders.length + filesystems.length > 0 && !isDeepStrictEqual(placesOf(before), placesOf(state));
      // If the session was recorded here and not imported, only the local folders and filesystems
      // are new.
      const { sha256, transactions: count } = before ?? { ...state, transactions: 0 };
      const part = toImportPart(session, { ...state, sha256, transactions: count }, true);
      if (isRemapped)
        await store.writes.write('.import', async () => ({
          ops: [{ op: 'put', doc: part, validTime: ALWAYS }],
          result: undefined,
        }));
      return { ...answer, isNew: false, isRemapped };
    }
    const lined = withLine(state, held);
    const hasMore = lined !== state;
    state = lined;
    if (isBegun && !isOther && before.staged !== undefined) {
      state = { ...state, staged: before.staged };
      if (hasMore) await recordLine(store, { header, state });
    } else {
      state = { ...state, staged: [...(await stageBundle(store, file, { bundle, limits }))] };
      const owned = isBegun ? await arriving(store, header.sessions) : held.newSessions;
      const ids = owned.map((name) => importId(sessionId(name)));
      const parts = await own.documents.newest(ids);
      const free = [
        ...held.newSessions.map((name) => store.guardOp(sessionObjectId(sessionId(name)), null)),
        // Locks do not reach other machines. With these guards, only one of two machines can begin
        // the import.
        ...ids.map((id) => store.guardOp(id, parts.get(id) ?? null)),
      ];
      const arrives = stateOps(owned, session, { state, isWhole: false });
      await store.writes.write('.import', async (attempt) => {
        const there = attempt > 1 ? await (await store.latest()).documents.importOf(session) : undefined;
        const isRecorded = there?.isWhole === false && there.sha256 === manifest.sha256 && there.staged !== undefined;
        return { ops: isRecorded ? [] : [...free, ...arrives], result: undefined };
      });
    }
    await writeStaged(store, { header, state, held, begun }, defined({ onProgress }));
    return { ...answer, isNew: true, isRemapped: false };
  } finally {
    unlock();
  }
}

import { isDeepStrictEqual } from 'node:util';
import { acquireSessionLock, type SessionLock } from '../lease/session-lock.js';
import { type SessionId, sessionId, sessionObjectId } from '../objects/ids.js';
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

/** A folder or a filesystem as it was recorded, and what it is here. */
type ImportedPlace = ImportState['folders'][number];

/** How a bundle is taken in. */
export interface ImportOptions {
  /** Where this database's clients keep their leases. */
  readonly clientDir: string;
  /** Where recorded folders and filesystems lie here: kept with the session, and nothing of it is rewritten. */
  readonly folders?: readonly ImportedPlace[];
  readonly filesystems?: readonly ImportedPlace[];
  readonly limits?: BundleLimits;
  /** Called with how many of the transactions were written. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** What became of a bundle. */
export interface ImportedBundle {
  readonly session: SessionId;
  readonly turn: number;
  readonly step: number;
  readonly sessions: readonly string[];
  /** False: the database held all of it already. */
  readonly isNew: boolean;
  /** Whether folders and filesystems of a session that was there already lie elsewhere from now on. */
  readonly isRemapped: boolean;
  readonly bundle: CheckedBundle;
}

/** What is known of an import holds from the beginning of time. */

/** Takes some sessions; the function that is returned gives them back. */
async function lockSessions(clientDir: string, sessions: readonly string[]): Promise<() => void> {
  const locks: SessionLock[] = [];
  const unlock = (): void => {
    for (const lock of locks) lock.release();
  };
  try {
    for (const name of sessions) locks.push(await acquireSessionLock(clientDir, sessionId(name), { what: 'palimpsest import' }));
    return unlock;
  } catch (error) {
    unlock();
    throw error;
  }
}

const placesOf = (state: ImportState | undefined): object => ({ folders: state?.folders ?? [], filesystems: state?.filesystems ?? [] });

/** What an import that was cut short has written. */
interface Begun {
  readonly here: readonly number[];
  /** Its versions. */
  readonly keys: ReadonlySet<string>;
  readonly transactions: readonly ImportedTransaction[];
}

/** Whether a bundle begins with what has come of another one: then it goes on behind it. */
function isBeginning(arrived: readonly ImportedTransaction[], transactions: readonly CheckedTransaction[]): boolean {
  return (
    arrived.length > 0 &&
    arrived.every(({ tx, time, puts }, i) => {
      const other = transactions[i];
      const said = other && { tx: other.tx, time: Date.parse(other.time), puts: other.puts.map(({ id, validTime }) => [id, validTime]) };
      return isDeepStrictEqual(said, { tx, time, puts });
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

/** Those of some sessions that are being imported. */
async function arriving(store: ObjectStore, sessions: readonly string[]): Promise<readonly string[]> {
  const { documents } = await store.latest();
  const are = await Promise.all(sessions.map((name) => documents.isArriving(name)));
  return sessions.filter((_, i) => are[i]);
}

/** What says of sessions that they are being imported, or that they are there. */
function say(
  sessions: readonly string[],
  session: SessionId,
  { state, isWhole }: { readonly state: ImportState; readonly isWhole: boolean },
): readonly TxOp[] {
  return sessions.map((name) => {
    const said = name === session ? state : { ...state, transactions: 0 };
    return { op: 'put', doc: toImportPart(sessionId(name), said, isWhole), validTime: ALWAYS };
  });
}

/** A state with the files that an import keeps to its sessions; the same one where it has them all. */
function withLine(state: ImportState, { lined }: HeldVersions): ImportState {
  const { line } = state;
  const fresh = lined.filter((id) => line?.files.includes(id) !== true);
  return line === undefined || fresh.length === 0 ? state : { ...state, line: { ...line, files: [...line.files, ...fresh] } };
}

/** Says of an import that was cut short what it keeps to its sessions by now. */
async function sayLine(store: ObjectStore, { header, state }: Pick<StagedImport, 'header' | 'state'>): Promise<void> {
  const owned = await arriving(store, header.sessions);
  const ops = say(owned, sessionId(header.session), { state, isWhole: false });
  await store.writes.write('.import', async () => ({ ops, result: undefined }));
}

/** What is to be brought in that was put away. */
interface StagedImport {
  readonly header: BundleHeader;
  readonly state: ImportState;
  readonly held: HeldVersions;
  readonly begun: Begun;
}

/** Writes what was put away, and says at last that the sessions are there. */
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
  await store.writes.write('.import', async () => ({ ops: say(owned, session, { state, isWhole: true }), result: undefined }));
  await store.keepPages(session, { upto: header.step, ready: async () => undefined });
}

/** An import that was cut short, and that is there now. */
export type FinishedImport = Pick<BundleHeader, 'session' | 'turn' | 'step' | 'sessions' | 'transactions'>;

/**
 * Finishes an import that was cut short, out of what it has put away: no file is needed. Files of which the database has learned versions since then are left as they are.
 * @throws {BundleError} `nothing-to-finish`
 * @throws {LeaseError} `held` – a process imports it
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
        ? `no import of session ${name} has come so far that there is something to finish: import its file`
        : `session ${name} is all there: nothing of its import is missing`,
    );
  if (named.staged === undefined)
    throw new BundleError('nothing-to-finish', `the import of session ${name} was begun by an earlier version: import the same file again`);
  const header = await stagedHeader(store, named.staged);
  const unlock = await lockSessions(clientDir, header.sessions);
  try {
    const { documents } = await store.latest();
    const session = sessionId(header.session);
    const state = await documents.importOf(session);
    if (state?.isWhole === false) {
      const { isWhole: _, ...said } = state;
      const begun = await begunImport(store, session);
      const puts: CheckedPut[] = [];
      for await (const { transaction } of stagedBlocks(store, named.staged)) puts.push(...transaction.puts);
      const { held } = await heldVersions(puts, { documents, sessions: header.sessions, begun: begun.keys });
      const lined = withLine(said, held);
      if (lined !== said) await sayLine(store, { header, state: lined });
      await writeStaged(store, { header, state: lined, held, begun }, defined({ onProgress }));
    }
    const { turn, step, sessions, transactions } = header;
    return { session, turn, step, sessions, transactions };
  } finally {
    unlock();
  }
}

/**
 * Takes a bundle into a database. All of it is checked before anything is written, and brought into the database before anything of it has a name there: cut short before that, nothing is left of it; cut short later, it can be finished without
 * the file. Valid times stay what they were; transactions are this database's, in the order of the bundle's, and each keeps what it was where it was
 * first written (decision 0019). Until the last of them the session is there for nobody; importing the same file again goes on, as `finishImport` does. A bundle that is there already changes nothing but
 * where its folders and filesystems lie, where that is named anew.
 * @throws {BundleError}
 * @throws {LeaseError} `held` – a process has the session open
 * @throws {StoreError} `conflict`
 * @throws {XtdbError}
 */
export async function importBundle(store: ObjectStore, file: string, options: ImportOptions): Promise<ImportedBundle> {
  const { clientDir, folders = [], filesystems = [], limits = {}, onProgress } = options;
  const bundle = await checkBundle(file, limits);
  const { header, manifest, transactions } = bundle;
  const session = sessionId(header.session);
  const unlock = await lockSessions(clientDir, header.sessions);
  try {
    const own = await ofSession(await store.latest(), session);
    // What came later, where the session goes on here, is not compared.
    const { documents } = asImported(own);
    const before = await own.documents.importOf(session);
    const isBegun = before?.isWhole === false;
    const begun: Begun = isBegun ? await begunImport(store, session) : { here: [], keys: new Set(), transactions: [] };
    const isOther = isBegun && before.sha256 !== manifest.sha256;
    if (isOther && !isBeginning(begun.transactions, transactions))
      throw new BundleError(
        'conflict',
        `session ${session} is being imported from another bundle, which was cut short, and this one does not begin with what has come of it: palimpsest import --finish ${session} brings the rest of that one; nothing was changed`,
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
      const isRemapped = folders.length + filesystems.length > 0 && !isDeepStrictEqual(placesOf(before), placesOf(state));
      // Of a session that was never imported nothing but the places is kept.
      const { sha256, transactions: count } = before ?? { ...state, transactions: 0 };
      const part = toImportPart(session, { ...state, sha256, transactions: count }, true);
      if (isRemapped)
        await store.writes.write('.import', async () => ({ ops: [{ op: 'put', doc: part, validTime: ALWAYS }], result: undefined }));
      return { ...answer, isNew: false, isRemapped };
    }
    const lined = withLine(state, held);
    const hasMore = lined !== state;
    state = lined;
    if (isBegun && !isOther && before.staged !== undefined) {
      state = { ...state, staged: before.staged };
      if (hasMore) await sayLine(store, { header, state });
    } else {
      state = { ...state, staged: [...(await stageBundle(store, file, { bundle, limits }))] };
      const owned = isBegun ? await arriving(store, header.sessions) : held.newSessions;
      const ids = owned.map((name) => importId(sessionId(name)));
      const said = await own.documents.newest(ids);
      const free = [
        ...held.newSessions.map((name) => store.guardOp(sessionObjectId(sessionId(name)), null)),
        // Locks say nothing of another machine: of two imports at once one is the first.
        ...ids.map((id) => store.guardOp(id, said.get(id) ?? null)),
      ];
      const arrives = say(owned, session, { state, isWhole: false });
      await store.writes.write('.import', async (attempt) => {
        const there = attempt > 1 ? await (await store.latest()).documents.importOf(session) : undefined;
        const isSaid = there?.isWhole === false && there.sha256 === manifest.sha256 && there.staged !== undefined;
        return { ops: isSaid ? [] : [...free, ...arrives], result: undefined };
      });
    }
    await writeStaged(store, { header, state, held, begun }, defined({ onProgress }));
    return { ...answer, isNew: true, isRemapped: false };
  } finally {
    unlock();
  }
}

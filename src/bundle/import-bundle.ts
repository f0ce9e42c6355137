import { isDeepStrictEqual } from 'node:util';
import { acquireSessionLock, type SessionLock } from '../lease/session-lock.js';
import { type SessionId, sessionId, sessionObjectId } from '../objects/ids.js';
import { type ImportedTransaction, type ImportState, importId, toImportPart, toTransactionPart } from '../store/import-parts.js';
import type { ObjectStore } from '../store/object-store.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { TxOp } from '../xtdb/transactions.js';
import { BundleError } from './bundle-error.js';
import { type CheckedBundle, type CheckedTransaction, chained, checkBundle } from './check-bundle.js';
import { TextCheck } from './check-document.js';
import { compareWithDatabase, type HeldVersions, importedKey } from './find-conflicts.js';
import { type BundleLimits, readBundle } from './read-bundle.js';

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

/** Parts of texts never change and hold from the beginning of time; so does what is known of an import. */
const ALWAYS = new Date(0);
/** Characters of texts that one transaction takes. */
const TEXTS_AT_ONCE = 4 * 1_048_576;

/** What one transaction of the bundle is written as. */
interface Block {
  readonly transaction: CheckedTransaction;
  readonly texts: readonly StoredDocument[];
  readonly documents: readonly StoredDocument[];
}

/** Texts of a transaction that has more of them than are held at once; it follows with the others. */
interface TextsAhead {
  /** Of the transaction. */
  readonly number: number;
  readonly ahead: readonly StoredDocument[];
}

const unitsOf = ({ text }: StoredDocument): number => (typeof text === 'string' ? text.length : 0);

/**
 * The transactions of a bundle that was checked, with their documents. Of their texts no more is held than one transaction of a database takes.
 * @throws {BundleError} `altered` – the file is another one by now
 */
async function* blocksOf(file: string, { transactions }: CheckedBundle, limits: BundleLimits): AsyncGenerator<Block | TextsAhead> {
  let chain = '';
  let at = -1;
  let [texts, documents]: [StoredDocument[], StoredDocument[]] = [[], []];
  let next: StoredDocument[] = [];
  let units = 0;
  // What goes ahead is written before it is known that all of its transaction is as it was: each text is what its hash says.
  const check = new TextCheck();
  const closed = (): Block | undefined => {
    const transaction = transactions[at];
    return transaction === undefined || documents.length === 0 ? undefined : { transaction, texts, documents };
  };
  for await (const read of readBundle(file, limits)) {
    const { line } = read;
    if (line.kind === 'text' || line.kind === 'transaction' || line.kind === 'manifest') {
      const block = closed();
      if (block !== undefined) {
        if (block.transaction.chain !== chain)
          throw new BundleError('altered', 'the bundle was changed while it was taken in; import it again once it rests');
        yield block;
      }
      documents = [];
    }
    if (line.kind !== 'manifest') chain = chained(chain, read);
    if (line.kind === 'transaction') [at, texts, next, units] = [at + 1, next, [], 0];
    if (line.kind === 'put') documents.push(line.document);
    if (line.kind !== 'text') continue;
    check.take(line.document);
    if (units > 0 && units + unitsOf(line.document) > TEXTS_AT_ONCE) {
      yield { number: at + 2, ahead: next };
      [next, units] = [[], 0];
    }
    next.push(line.document);
    units += unitsOf(line.document);
  }
}

/** Writes the transactions of one bundle, each as one of this database, in their order. */
class BundleWriter {
  readonly #store: ObjectStore;
  readonly #session: SessionId;
  readonly #held: HeldVersions;
  /** This database's transaction of each of the bundle's. */
  readonly #here: number[];
  /** What this import has put: nobody else may have put it meanwhile, except versions of files, which are everybody's. */
  readonly #put = new Set<string>();

  constructor(store: ObjectStore, session: SessionId, { held, here }: { readonly held: HeldVersions; readonly here: readonly number[] }) {
    this.#store = store;
    this.#session = session;
    this.#held = held;
    this.#here = [...here];
  }

  async write({ transaction, texts, documents }: Block): Promise<void> {
    const { number, tx, time, puts } = transaction;
    if (number <= this.#here.length) return;
    const rest = await this.#missingTexts(texts);
    const placed = documents.flatMap((document, i): readonly TxOp[] => {
      const put = puts[i];
      if (put === undefined || this.#held.isThere(put)) return [];
      const isFree = put.type === 'file' || this.#held.isKnown(put.id) || this.#put.has(put.id);
      this.#put.add(put.id);
      const guard = isFree ? [] : [this.#store.guardOp(put.id, null)];
      return [...guard, { op: 'put', doc: this.#based(document), validTime: new Date(put.validTime) }];
    });
    const origin = { tx, time: Date.parse(time), puts: puts.map(({ id, validTime }) => [id, validTime] as [string, number]) };
    const said = toTransactionPart(this.#session, number, origin);
    this.#here.push(await this.#commit(said, [...rest, ...placed, { op: 'put', doc: said, validTime: ALWAYS }]));
  }

  /** Writes texts before their transaction: a text is the same wherever it comes from. */
  async writeAhead({ number, ahead }: TextsAhead): Promise<void> {
    if (number <= this.#here.length) return;
    const ops = await this.#missingTexts(ahead);
    await this.#store.writes.write('.import', async () => ({ ops, result: undefined }));
  }

  /** What writes the texts that the database does not hold. */
  async #missingTexts(texts: readonly StoredDocument[]): Promise<readonly TxOp[]> {
    const parts = new Map(texts.map((part) => [part['xt/id'], part]));
    const there = new Set(texts.length === 0 ? [] : await (await this.#store.latest()).existing([...parts.keys()]));
    return [...parts].flatMap(([id, doc]): readonly TxOp[] => (there.has(id) ? [] : [{ op: 'put', doc, validTime: ALWAYS }]));
  }

  /** Commits what a part says has been written; a commit whose answer was lost is looked up. */
  async #commit(said: StoredDocument, ops: readonly TxOp[]): Promise<number> {
    const id = said['xt/id'];
    const guard = this.#store.guardOp(id, null);
    const { txId } = await this.#store.writes.write('.import', async (attempt) => {
      const there = attempt > 1 ? (await (await this.#store.latest()).documents.newest([id])).get(id) : undefined;
      const isWritten = there !== undefined && there.text === said.text;
      if (there !== undefined && !isWritten)
        throw new BundleError('conflict', `somebody else imports session ${this.#session} at the same time, from another bundle`);
      return { ops: isWritten ? [] : [guard, ...ops], result: undefined };
    });
    if (txId !== undefined) return txId;
    const [place] = await (await this.#store.latest()).documents.places([id]);
    return place?.txId ?? 0;
  }

  /** A context's basis as this database has it. */
  #based(document: StoredDocument): StoredDocument {
    if (document.type !== 'assembly') return document;
    const body = document.body as { readonly basis: { readonly validTime: number; readonly txId: number } | null };
    if (body.basis === null) return document;
    const { txId: number } = body.basis;
    const txId = number === 0 ? Math.max(0, (this.#here[0] ?? 1) - 1) : this.#here[number - 1];
    if (txId === undefined) throw new Error('BUG: a basis that is not written yet');
    return { ...document, body: { ...body, basis: { ...body.basis, txId } } };
  }
}

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

/**
 * Takes a bundle into a database. All of it is checked before anything is written. Valid times stay what they were; transactions are this database's, in the order of the bundle's, and each keeps what it was where it was
 * first written (decision 0019). Until the last of them the session is there for nobody; where it is cut short, importing the same file again goes on. A bundle that is there already changes nothing but
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
    const { documents } = await store.latest();
    const before = await documents.importOf(session);
    const isBegun = before?.isWhole === false;
    const begun: Begun = isBegun ? await begunImport(store, session) : { here: [], keys: new Set(), transactions: [] };
    const isOther = isBegun && before.sha256 !== manifest.sha256;
    if (isOther && !isBeginning(begun.transactions, transactions))
      throw new BundleError(
        'conflict',
        `session ${session} is being imported from another bundle, which was cut short, and this one does not begin with what has come of it: import that one again; nothing was changed`,
      );
    const held = await compareWithDatabase(bundle, documents, begun.keys);
    const { turn, step, sessions } = header;
    const answer = { session, turn, step, sessions, bundle };
    const state: ImportState = {
      sha256: manifest.sha256,
      transactions: transactions.length,
      folders: [...folders],
      filesystems: [...filesystems],
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
    const owned: string[] = [];
    for (const name of header.sessions) if (isBegun ? await documents.isArriving(name) : held.newSessions.includes(name)) owned.push(name);
    const parts = owned.map((name) => ({ name: sessionId(name), state: name === session ? state : { ...state, transactions: 0 } }));
    const say = (isWhole: boolean): readonly TxOp[] =>
      parts.map(({ name, state: said }) => ({ op: 'put', doc: toImportPart(name, said, isWhole), validTime: ALWAYS }));
    if (!isBegun || isOther) {
      const ids = owned.map((name) => importId(sessionId(name)));
      const said = await documents.newest(ids);
      const free = [
        ...held.newSessions.map((name) => store.guardOp(sessionObjectId(sessionId(name)), null)),
        // Locks say nothing of another machine: of two imports at once one is the first.
        ...ids.map((id) => store.guardOp(id, said.get(id) ?? null)),
      ];
      await store.writes.write('.import', async (attempt) => {
        const there = attempt > 1 ? await (await store.latest()).documents.importOf(session) : undefined;
        const isSaid = there?.isWhole === false && there.sha256 === manifest.sha256;
        return { ops: isSaid ? [] : [...free, ...say(false)], result: undefined };
      });
    }
    const writer = new BundleWriter(store, session, { held, here: begun.here });
    for await (const block of blocksOf(file, bundle, limits)) {
      if ('ahead' in block) await writer.writeAhead(block);
      else {
        await writer.write(block);
        onProgress?.(block.transaction.number, transactions.length);
      }
    }
    await store.writes.write('.import', async () => ({ ops: say(true), result: undefined }));
    await store.keepPages(session, { upto: step, ready: async () => undefined });
    return { ...answer, isNew: true, isRemapped: false };
  } finally {
    unlock();
  }
}

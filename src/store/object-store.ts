import { LRUCache } from 'lru-cache';
import { canonicalJson } from '../objects/canonical-json.js';
import { type ContextRecord, contextRecord } from '../objects/context-record.js';
import { hashText } from '../objects/hashes.js';
import { type PartId, type SessionId, sessionObjectId } from '../objects/ids.js';
import type { ObjectVersion } from '../objects/seal.js';
import { counted } from '../values/counted.js';
import { defined } from '../values/defined.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { END_OF_TIME, type TxOp } from '../xtdb/transactions.js';
import { entityHash } from '../xtdb/tx-log.js';
import type { XtdbClient } from '../xtdb/xtdb-client.js';
import { recordedSessions, recordId, toRecordPart } from './context-records.js';
import { StoreError } from './errors.js';
import { type HeadMarks, type StoredParts, toStored } from './head.js';
import { KnownCalls } from './step-page.js';
import { StoreSnapshot } from './store-snapshot.js';
import { TextCache, textParts } from './texts.js';
import { WritePath, type Written } from './write-path.js';

/** A version to be written. */
export interface Put {
  readonly version: ObjectVersion;
  readonly marks?: HeadMarks;
  /** From when on it holds (decision F7); the database's own moment when absent. */
  readonly validTime?: Date;
  /** Compare and set: the head that must stand there now, null for none. Absent: no guard. */
  readonly expect?: StoredDocument | null;
}

/** Both clocks of a read [decision F7]; of the transaction clock either the number or the time. What is left out means now. */
export interface AskedBasis {
  readonly validTime?: Date;
  readonly txId?: number;
  readonly txTime?: Date;
}

/** A version as it will be stored: what is folded from steps has left it already (decision G4). */
export interface StoredPut extends StoredParts, Pick<Put, 'validTime' | 'expect'> {}

/** A version as it will be stored. */
export function storedPut({ version, marks, validTime, expect }: Put): StoredPut {
  return {
    ...toStored(version, marks),
    ...defined({ validTime, expect }),
  };
}

/** Content-addressed parts never change, so they hold from the beginning of time: every as-of read that sees a head sees its parts. */
export const ALWAYS = new Date(0);
/** XTDB's own end of time lies on the same day. */
const LAST_DAY = Date.UTC(9999, 11, 31);

/** A valid time as it may be reported: undefined for the end of time, which stands for the newest versions whatever the clocks say. */
export function reportedTime(time: Date): Date | undefined {
  return time.getTime() < LAST_DAY ? time : undefined;
}

/** Where pages of steps wait for each other; no session can have its name. */
const PAGES_LANE = '.pages';
/** Pages of one transaction. */
const PAGES_AT_ONCE = 4;

/** With fewer objects than this, reading all of them again takes one query and no longer than asking the log. */
const LOG_PAYS_FROM = 100;
/** After more transactions than this, reading all objects again is no dearer. */
const MOST_LOGGED = 500;

/** How records are written. */
export interface RecordOptions {
  /** Texts that the records name by their hashes, each kept under its own. */
  readonly texts?: readonly string[];
  /** The head of a session as its writer left it (decision F5): nothing is written once another writer has continued the session. */
  readonly lease?: StoredDocument;
}

/** Records with their ids and the parts that hold them. */
interface RecordBatch {
  readonly ids: readonly PartId[];
  readonly parts: ReadonlyMap<PartId, { readonly record: ContextRecord; readonly part: StoredDocument }>;
  readonly sessions: ReadonlySet<SessionId>;
}

function recordBatch(records: readonly ContextRecord[]): RecordBatch {
  const checked = records.map(contextRecord);
  const ids = checked.map(recordId);
  const parts = new Map(checked.map((record, i) => [ids[i] as PartId, { record, part: toRecordPart(record) }]));
  return { ids, parts, sessions: recordedSessions(checked) };
}

async function isWritten({ documents }: StoreSnapshot, { parts }: RecordBatch): Promise<boolean> {
  const known = await documents.dated([...parts.keys()]);
  return [...parts].every(([id, { part }]) => known.get(id)?.document.text === part.text);
}

async function requireLease(snapshot: StoreSnapshot, lease: StoredDocument): Promise<void> {
  const id = lease['xt/id'];
  const head = (await snapshot.heads([id])).get(id)?.document;
  if (head === undefined || canonicalJson(head) !== canonicalJson(lease))
    throw new StoreError('conflict', `another writer has continued ${id}: nothing was recorded`);
}

async function requireSessions(snapshot: StoreSnapshot, sessions: readonly SessionId[]): Promise<void> {
  const there = new Set(await snapshot.existing(sessions.map(sessionObjectId)));
  const unknown = sessions.find((session) => !there.has(sessionObjectId(session)));
  if (unknown !== undefined) throw new StoreError('unknown-session', `a record names session ${unknown}, which the database does not hold`);
}

/** Versions in and out of the database; reads hang on a snapshot with a fixed basis, writes go through one ordered path. */
export class ObjectStore {
  readonly writes: WritePath;
  readonly #xtdb: XtdbClient;
  readonly #cache: TextCache;
  readonly #calls = new KnownCalls();
  readonly #hashes = new LRUCache<string, string>(counted(100_000));
  #newest = 0;

  constructor(xtdb: XtdbClient, cache: TextCache = new TextCache()) {
    this.#xtdb = xtdb;
    this.#cache = cache;
    this.writes = new WritePath(xtdb);
  }

  /** The objects as they stand now: at the clock's moment, or at that of this client's newest version where several of one millisecond ran ahead. */
  now(): Promise<StoreSnapshot> {
    return this.asOf({ validTime: new Date(Math.max(Date.now(), this.#newest)) });
  }

  /** The newest version of every object whatever the clocks say: what is decided and guarded by. */
  latest(): Promise<StoreSnapshot> {
    return this.asOf({ validTime: END_OF_TIME });
  }

  /** The last transaction that the database has indexed; undefined for an empty one. Waits for nothing. */
  async latestTransaction(): Promise<number | undefined> {
    return (await this.#xtdb.latestCompletedTx())?.txId;
  }

  /** The newest versions as of a transaction that is known to be indexed; this client's own later ones are not awaited. */
  newestAt(txId: number): StoreSnapshot {
    return new StoreSnapshot(this.#xtdb.indexed(END_OF_TIME, txId), { cache: this.#cache, calls: this.#calls });
  }

  /**
   * Those of some objects that transactions wrote after one and up to another, which is indexed; later ones may be among them. Undefined where reading all of
   * the objects again is no dearer, or where the log of transactions does not say.
   */
  async writtenBetween(ids: readonly string[], after: number, upto: number): Promise<ReadonlySet<string> | undefined> {
    const [known] = ids;
    if (known === undefined) return new Set();
    if (upto <= after) return new Set();
    if (ids.length < LOG_PAYS_FROM || upto - after > MOST_LOGGED) return undefined;
    const written = await this.#xtdb.log.writtenAfter(after, known);
    return written === undefined ? undefined : new Set(ids.filter((id) => written.has(this.#hashOf(id))));
  }

  /** Says that something of this client's holds from a moment on, so that `now` sees it. */
  noteTime(ms: number): void {
    this.#newest = Math.max(this.#newest, ms);
  }

  /** The objects as they stood at a valid time, as known at a transaction; what is left out means now. XtdbError `out-of-sync` beyond the last transaction. */
  async asOf(basis: AskedBasis): Promise<StoreSnapshot> {
    return new StoreSnapshot(await this.#xtdb.db(basis), { cache: this.#cache, calls: this.#calls });
  }

  /**
   * Writes many versions as one transaction: all or nothing. Resolves to false, with nothing written, when a guard (`expect`) did not hold, or one of the
   * `unmoved` entities is not as it is given there, null for one that is not there.
   */
  async putMany(
    puts: readonly (Put | StoredPut)[],
    unmoved: ReadonlyMap<string, StoredDocument | null> = new Map(),
  ): Promise<Written<boolean>> {
    const guards = [...unmoved].map(([id, document]) => this.guardOp(id, document));
    const ops = [...guards, ...puts.flatMap((put) => ('head' in put ? this.storedOps(put) : this.putOps(put)))];
    if (ops.length === 0) return { result: true, txId: undefined };
    // One attempt: whoever set the guard decides anew.
    let tried = false;
    const written = await this.writes.write('.put', async () => {
      if (tried) return { ops: [], result: false };
      tried = true;
      return { ops, result: true };
    });
    if (written.result) this.markStored(ops);
    return written;
  }

  /**
   * Writes records (decision 0016) as one transaction: all or nothing. One that is there already is not written again; an item of a memory stands over its earlier version.
   * Resolves to their ids, in the given order. Whoever holds a session writes its records with `ContextSession.keepRecords`.
   * A function decides them by what the database holds, and again where another writer changed what they are written over, so that nothing is written over what was not read.
   *
   * @throws {DocumentError} one is not valid: nothing is written
   * @throws {StoreError} `unknown-session`; `conflict`, also where another writer has continued the session of the lease
   */
  async putRecords(
    records: readonly ContextRecord[] | ((snapshot: StoreSnapshot) => Promise<readonly ContextRecord[]>),
    { texts = [], lease }: RecordOptions = {},
  ): Promise<Written<readonly PartId[]>> {
    let batch = typeof records === 'function' ? undefined : recordBatch(records);
    const textDocuments = [...new Set(texts)].flatMap((text) => textParts(text, hashText(text)));
    let put: readonly TxOp[] = [];
    const times: number[] = [];
    const written = await this.writes.write('.records', async () => {
      const snapshot = await this.latest();
      if (lease !== undefined) await requireLease(snapshot, lease);
      // Decided before: written, only its outcome was lost, or refused.
      if (typeof records === 'function' && !(batch !== undefined && (await isWritten(snapshot, batch))))
        batch = recordBatch(await records(snapshot));
      const { ids, parts, sessions: named } = batch ?? recordBatch([]);
      const sessions = [...named].filter((session) => sessionObjectId(session) !== lease?.['xt/id']);
      if (sessions.length > 0) await requireSessions(snapshot, sessions);
      const known = await snapshot.documents.dated([...parts.keys()]);
      const ops = [...parts].flatMap(([id, { record, part }]): readonly TxOp[] => {
        const there = known.get(id);
        // What is written later stands over what was there, whatever clock dated it.
        const validTime = new Date(Math.max(record.at, there?.validTime.getTime() ?? 0));
        times.push(validTime.getTime());
        if (there?.document.text === part.text) return [];
        return [this.guardOp(id, there?.document ?? null), { op: 'put', doc: part, validTime }];
      });
      put = this.textOps(textDocuments);
      const guard = lease === undefined ? [] : [this.guardOp(lease['xt/id'], lease)];
      return { ops: ops.length + put.length === 0 ? [] : [...guard, ...put, ...ops], result: ids };
    });
    this.markStored(put);
    for (const time of times) this.noteTime(time);
    return written;
  }

  /** The operations that write one version: its guard, the text parts that the database is not known to hold, and its head. */
  putOps(put: Put): readonly TxOp[] {
    const { content, content_hash } = put.version;
    if (content !== null && content_hash !== null) this.#cache.set(content_hash, content);
    return this.storedOps(storedPut(put));
  }

  /** The operations that write a version which was split already. */
  storedOps({ head, texts, validTime, expect }: StoredPut): readonly TxOp[] {
    if (validTime !== undefined) this.noteTime(validTime.getTime());
    const guard: readonly TxOp[] = expect === undefined ? [] : [this.guardOp(head['xt/id'], expect)];
    return [...guard, ...this.textOps(texts), { op: 'put', doc: head, ...defined({ validTime }) }];
  }

  /** The operation that lets a transaction commit only if an entity's newest document is this one, or if there is none. */
  guardOp(id: string, doc: StoredDocument | null): TxOp {
    return { op: 'match', id, doc, validTime: END_OF_TIME };
  }

  /** The operations that write text parts, less those that are known to be there. */
  textOps(parts: readonly StoredDocument[]): readonly TxOp[] {
    return parts.filter((part) => !this.#cache.isStored(part['xt/id'])).map((doc) => ({ op: 'put', doc, validTime: ALWAYS }));
  }

  /** Remembers the text parts of a committed transaction, so that they are not sent again. */
  markStored(ops: readonly TxOp[]): void {
    for (const op of ops) if (op.op === 'put' && op.validTime === ALWAYS) this.#cache.markStored(op.doc['xt/id']);
  }

  /**
   * Puts the pages that a session's steps up to one make up and that are not there (decision 0015), one transaction after another. Each says what its steps say, so whoever puts
   * it first, now or later, puts the same. `ready` is
   * awaited before each.
   * @throws {XtdbError}
   */
  async keepPages(session: SessionId, { upto, ready }: { readonly upto: number; readonly ready: () => Promise<void> }): Promise<void> {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const done: number = after;
      const { result } = await this.writes.write(PAGES_LANE, async (attempt) => {
        await ready();
        // Refused: somebody else has put them.
        const snapshot = await this.latest();
        const lineage = attempt === 1 ? await snapshot.lineage(session) : undefined;
        const missing = lineage === undefined ? [] : (await snapshot.pages.missing(lineage, upto)).filter(({ last }) => last > done);
        const ranges = missing.slice(0, PAGES_AT_ONCE);
        const pages = await Promise.all(ranges.map((range) => snapshot.pages.made(range)));
        const ops = pages.flatMap((page): readonly TxOp[] =>
          page === undefined ? [] : [this.guardOp(page.part['xt/id'], null), { op: 'put', doc: page.part, validTime: page.validTime }],
        );
        return { ops, result: missing.length > ranges.length ? ranges.at(-1)?.last : undefined };
      });
      after = result;
    }
  }

  #hashOf(id: string): string {
    const known = this.#hashes.get(id) ?? entityHash(id);
    this.#hashes.set(id, known);
    return known;
  }

  /** Waits for writes under way and takes no more. Idempotent; the database client stays open, it belongs to whoever opened it. */
  close(): Promise<void> {
    return this.writes.close();
  }
}

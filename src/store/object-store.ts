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
import { entityHash, type LoggedTransaction } from '../xtdb/tx-log.js';
import type { XtdbClient } from '../xtdb/xtdb-client.js';
import { recordedSessions, recordId, toRecordPart } from './context-records.js';
import { StoreError } from './errors.js';
import { type HeadMarks, type StoredParts, toStored } from './head.js';
import { type SessionFile, SessionTable } from './session-table.js';
import { KnownCalls } from './step-page.js';
import { type KnownOfStore, StoreSnapshot } from './store-snapshot.js';
import { TextCache, textParts } from './texts.js';
import { WritePath, type Written } from './write-path.js';

/** A version to write. */
export interface Put {
  readonly version: ObjectVersion;
  readonly marks?: HeadMarks;
  /** Beginning of its valid time (decision F7). If absent, the time of the transaction. */
  readonly validTime?: Date;
  /**
   * Compare and set: the head that must exist now, or null for no head. If absent, there is no
   * guard.
   */
  readonly expect?: StoredDocument | null;
}

/**
 * Both clocks of a read [decision F7]. The transaction clock is either a number or a time. An
 * absent clock means now.
 */
export interface AskedBasis {
  readonly validTime?: Date;
  readonly txId?: number;
  readonly txTime?: Date;
}

/** The stored form of a version, without the fields folded from steps (decision G4). */
export interface StoredPut extends StoredParts, Pick<Put, 'validTime' | 'expect'> {}

/** Returns the stored form of a version. */
export function storedPut({ version, marks, validTime, expect }: Put): StoredPut {
  return {
    ...toStored(version, marks),
    ...defined({ validTime, expect }),
  };
}

/**
 * The valid time of content-addressed parts: the beginning of time. So every read that sees a head
 * also sees its parts.
 */
export const ALWAYS = new Date(0);
/** The day of XTDB's own end of time. */
const LAST_DAY = Date.UTC(9999, 11, 31);

/**
 * Returns a valid time that can be reported. Undefined for the end of time, which selects the
 * newest versions regardless of clocks.
 */
export function reportedTime(time: Date): Date | undefined {
  return time.getTime() < LAST_DAY ? time : undefined;
}

/** The write lane for pages of steps. A session cannot have this name. */
const PAGES_LANE = '.pages';
/** Number of pages per transaction. */
const PAGES_AT_ONCE = 4;

/**
 * Minimum number of objects for which reading the log pays off. Fewer objects are read again in one
 * query.
 */
const LOG_PAYS_FROM = 100;
/** Maximum number of transactions for which the log is cheaper than reading all objects again. */
const MOST_LOGGED = 500;

/** Caches of a store. All are optional. */
export interface StoreOptions {
  readonly cache?: TextCache;
  /**
   * Returns before each write whether an erasure may have removed documents since the write before.
   */
  readonly erasedMeanwhile?: (() => Promise<boolean>) | undefined;
  /** Keeps the list of sessions. Without it, each list of sessions is read anew. */
  readonly sessionFile?: SessionFile | undefined;
}

/** Options for writing records. */
export interface RecordOptions {
  /** Texts that the records refer to by hash. Each is stored under its hash. */
  readonly texts?: readonly string[];
  /**
   * The head of a session as its writer left it (decision F5). The write fails if another writer
   * has continued the session.
   */
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
  if (unknown !== undefined)
    throw new StoreError('unknown-session', `a record names session ${unknown}, which the database does not hold`);
}

/**
 * Reads and writes object versions. Reads use a snapshot with a fixed basis. Writes go through one
 * ordered path.
 */
export class ObjectStore {
  readonly writes: WritePath;
  readonly #xtdb: XtdbClient;
  readonly #known: KnownOfStore;
  readonly #hashes = new LRUCache<string, string>(counted(100_000));
  #newest = 0;

  constructor(xtdb: XtdbClient, { cache = new TextCache(), erasedMeanwhile, sessionFile }: StoreOptions = {}) {
    this.#xtdb = xtdb;
    this.#known = {
      cache,
      calls: new KnownCalls(),
      ...(sessionFile === undefined ? {} : { sessions: new SessionTable(xtdb.log, sessionFile) }),
    };
    this.writes = new WritePath(xtdb, async () => {
      if ((await erasedMeanwhile?.()) === true) cache.forgetStored();
    });
  }

  /**
   * Returns the objects at the current time, or at the valid time of this client's newest version
   * if that is later. The valid time of a version can be ahead of the clock if several versions
   * fall into one millisecond.
   */
  now(): Promise<StoreSnapshot> {
    return this.asOf({ validTime: new Date(Math.max(Date.now(), this.#newest)) });
  }

  /**
   * Returns the newest version of every object regardless of clocks. Decisions and guards use this
   * snapshot.
   */
  latest(): Promise<StoreSnapshot> {
    return this.asOf({ validTime: END_OF_TIME });
  }

  /**
   * Returns the last transaction that the database has indexed, without waiting. Undefined for an
   * empty database.
   */
  async latestTransaction(): Promise<number | undefined> {
    return (await this.#xtdb.latestCompletedTx())?.txId;
  }

  /**
   * Returns the newest versions as of a transaction that is known to be indexed. Does not await
   * this client's later writes.
   */
  newestAt(txId: number): StoreSnapshot {
    return new StoreSnapshot(this.#xtdb.indexed(END_OF_TIME, txId), this.#known);
  }

  /**
   * Returns the objects that transactions wrote after `after` and up to `upto`, which is indexed.
   * The result may include later writes. Undefined if the log is unavailable, or if reading all
   * objects again is as cheap.
   */
  async writtenBetween(ids: readonly string[], after: number, upto: number): Promise<ReadonlySet<string> | undefined> {
    const [known] = ids;
    if (known === undefined) return new Set();
    if (upto <= after) return new Set();
    if (ids.length < LOG_PAYS_FROM || upto - after > MOST_LOGGED) return undefined;
    const written = await this.#xtdb.log.writtenAfter(after, known);
    return written === undefined ? undefined : new Set(ids.filter((id) => written.has(this.#hashOf(id))));
  }

  /**
   * Returns the next transactions after `txId` with the documents that they put, about `maxBytes`
   * in total.
   */
  loggedAfter(txId: number, maxBytes: number): Promise<readonly LoggedTransaction[]> {
    return this.#xtdb.log.documentsAfter(txId, { maxBytes });
  }

  /** Records the valid time of a write of this client, so that `now` includes it. */
  noteTime(ms: number): void {
    this.#newest = Math.max(this.#newest, ms);
  }

  /**
   * Returns the objects at a valid time, as known at a transaction. An absent clock means now.
   *
   * @throws {XtdbError} `out-of-sync` beyond the last transaction
   */
  async asOf(basis: AskedBasis): Promise<StoreSnapshot> {
    return new StoreSnapshot(await this.#xtdb.db(basis), this.#known);
  }

  /**
   * Writes many versions as one transaction: all or nothing. Resolves to false, with nothing
   * written, if a guard (`expect`) failed or an `unmoved` entity no longer has the given document.
   * Null requires that the entity is absent.
   */
  async putMany(
    puts: readonly (Put | StoredPut)[],
    unmoved: ReadonlyMap<string, StoredDocument | null> = new Map(),
  ): Promise<Written<boolean>> {
    const guards = [...unmoved].map(([id, document]) => this.guardOp(id, document));
    const ops = [...guards, ...puts.flatMap((put) => ('head' in put ? this.storedOps(put) : this.putOps(put)))];
    if (ops.length === 0) return { result: true, txId: undefined };
    // Tries only once, because only the caller can decide what to write after a failed guard.
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
   * Writes records (decision 0016) as one transaction, and resolves to their ids in the given
   * order. Existing records are not written again. A memory item replaces its earlier version. The
   * owner of a session writes its records with `ContextSession.keepRecords`.
   *
   * A function given as `records` computes them from the database. It runs again if another writer
   * changed the records that it replaces, so it never overwrites a version that it has not read.
   *
   * @throws {DocumentError} if a record is not valid; nothing is written
   * @throws {StoreError} `unknown-session`; `conflict`, also if another writer has taken the lease
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
      // Computes the records, unless an earlier attempt wrote its batch and the outcome was lost.
      if (typeof records === 'function' && !(batch !== undefined && (await isWritten(snapshot, batch))))
        batch = recordBatch(await records(snapshot));
      const { ids, parts, sessions: named } = batch ?? recordBatch([]);
      const sessions = [...named].filter((session) => sessionObjectId(session) !== lease?.['xt/id']);
      if (sessions.length > 0) await requireSessions(snapshot, sessions);
      const known = await snapshot.documents.dated([...parts.keys()]);
      const ops = [...parts].flatMap(([id, { record, part }]): readonly TxOp[] => {
        const there = known.get(id);
        // A later write replaces the earlier version even if the writer's clock is behind.
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

  /**
   * Returns the operations that write one version: its guard, text parts not known to be stored,
   * and its head.
   */
  putOps(put: Put): readonly TxOp[] {
    const { content, content_hash } = put.version;
    if (content !== null && content_hash !== null) this.#known.cache.set(content_hash, content);
    return this.storedOps(storedPut(put));
  }

  /** Returns the operations that write a version in its stored form. */
  storedOps({ head, texts, validTime, expect }: StoredPut): readonly TxOp[] {
    if (validTime !== undefined) this.noteTime(validTime.getTime());
    const guard: readonly TxOp[] = expect === undefined ? [] : [this.guardOp(head['xt/id'], expect)];
    return [...guard, ...this.textOps(texts), { op: 'put', doc: head, ...defined({ validTime }) }];
  }

  /**
   * Returns the operation that aborts the transaction unless an entity's newest document equals
   * `doc`. Null requires that there is no document.
   */
  guardOp(id: string, doc: StoredDocument | null): TxOp {
    return { op: 'match', id, doc, validTime: END_OF_TIME };
  }

  /** Returns the operations that write text parts, except parts known to be stored. */
  textOps(parts: readonly StoredDocument[]): readonly TxOp[] {
    return parts
      .filter((part) => !this.#known.cache.isStored(part['xt/id']))
      .map((doc) => ({ op: 'put', doc, validTime: ALWAYS }));
  }

  /** Records the text parts of a committed transaction, so that they are not sent again. */
  markStored(ops: readonly TxOp[]): void {
    for (const op of ops) if (op.op === 'put' && op.validTime === ALWAYS) this.#known.cache.markStored(op.doc['xt/id']);
  }

  /**
   * Writes the missing pages of a session's steps up to `upto` (decision 0015), one transaction
   * after another. The steps determine each page, so every writer writes the same page. `ready` is
   * awaited before each transaction.
   *
   * @throws {XtdbError}
   */
  async keepPages(
    session: SessionId,
    { upto, ready }: { readonly upto: number; readonly ready: () => Promise<void> },
  ): Promise<void> {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const done: number = after;
      const { result } = await this.writes.write(PAGES_LANE, async (attempt) => {
        await ready();
        // On a later attempt, the guard has failed: another client has written these pages.
        const snapshot = await this.latest();
        const lineage = attempt === 1 ? await snapshot.lineage(session) : undefined;
        const missing =
          lineage === undefined ? [] : (await snapshot.pages.missing(lineage, upto)).filter(({ last }) => last > done);
        const ranges = missing.slice(0, PAGES_AT_ONCE);
        const pages = await Promise.all(ranges.map((range) => snapshot.pages.made(range)));
        const ops = pages.flatMap((page): readonly TxOp[] =>
          page === undefined
            ? []
            : [this.guardOp(page.part['xt/id'], null), { op: 'put', doc: page.part, validTime: page.validTime }],
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

  /**
   * Waits for running writes and accepts no more. Idempotent. The database client stays open for
   * its owner to close.
   */
  close(): Promise<void> {
    return this.writes.close();
  }
}

import { EdnMap, EdnTagged, type EdnValue, elements, sym } from '../edn/values.js';
import { type DatalogQuery, distinctRows, each, encodeQuery, pull } from './datalog.js';
import { type StoredDocument, toDocument } from './documents.js';
import { type EntityNames, holdsAt, readRow, storedArguments } from './entity-names.js';
import { XtdbError } from './errors.js';
import type { HttpRequest, XtdbHttp } from './http.js';
import { askOnceIndexed, type RequestOptions } from './requests.js';
import { entityId, readReceipt } from './transactions.js';
import { NO_DOCUMENT, TransactionLog } from './tx-log.js';

/**
 * A point on both clocks: the facts that were valid at `validTime`, as the database knew them after
 * transaction `txId`.
 */
export interface Basis {
  readonly validTime: Date;
  /** `undefined` if no transaction was indexed yet. */
  readonly txId: number | undefined;
  /** `undefined` if the basis was requested by transaction id, or if there is no transaction. */
  readonly txTime: Date | undefined;
}

/** One version in an entity's history. */
export interface HistoryEntry extends EntityTx {
  /** `undefined` if documents were not requested, and for a deletion. */
  readonly document: StoredDocument | undefined;
  /** True if the entity ended here. */
  readonly deleted: boolean;
}

/** The part of a history to read. */
export interface HistoryOptions extends RequestOptions {
  readonly withDocs?: boolean;
  /**
   * Only versions that begin at this valid time or later. The version that was valid at this time
   * but began earlier is excluded.
   */
  readonly from?: Date;
}

/** The beginning of a version's valid time, if it is known, and its transaction [decision F7]. */
export interface EntityTx {
  readonly validTime: Date;
  readonly txTime: Date;
  readonly txId: number;
}

/** A document that was read, and the beginning of its valid time if that was requested. */
export interface RememberedDocument {
  readonly document: StoredDocument;
  readonly since: Date | undefined;
}

/**
 * Caches documents read at one basis, where they never change. It grows with the steps and heads
 * that are read. Documents with texts, such as chunks, pages and records, are not cached.
 */
export class DocumentMemory {
  readonly #documents = new Map<string, RememberedDocument | undefined>();

  /** Returns whether an id's document is known, and with `dated` also its valid time. */
  knows(id: string, dated = false): boolean {
    const known = this.#documents.get(id);
    return known === undefined ? this.#documents.has(id) : !dated || known.since !== undefined;
  }

  /** Returns the known document of an id. Undefined if it is absent or unknown. */
  get(id: string): RememberedDocument | undefined {
    return this.#documents.get(id);
  }

  /** Adds a document that was read. */
  learn(document: StoredDocument, since?: Date): void {
    if (document.text !== undefined) return;
    const id = String(document['xt/id']);
    this.#documents.set(id, { document, since: since ?? this.#documents.get(id)?.since });
  }

  /** Records that some ids have no document. */
  learnAbsent(ids: readonly string[]): void {
    for (const id of ids) this.#documents.set(id, undefined);
  }
}

/** Settings of a snapshot. */
interface SnapshotSettings {
  readonly timeoutMs: number;
  readonly memory?: DocumentMemory;
  readonly names?: EntityNames | undefined;
}

/** The media type of bulk answers. */
const TRANSIT = 'application/transit+json';
/** Number of documents per query. */
const BATCH = 500;
/** Maximum concurrent batches; the node runs few queries at a time. */
const BATCHES_IN_FLIGHT = 3;
/** The transaction id of a snapshot taken before the first transaction. */
const BEFORE_FIRST_TX = -1;

/**
 * The database at one moment. Every read of a snapshot sees the same valid time and the same
 * transactions, however long it is kept.
 *
 * All methods take a time limit and an AbortSignal, and throw XtdbError. `undefined` means not
 * found.
 */
export class DbSnapshot {
  readonly basis: Basis;
  readonly #http: XtdbHttp;
  readonly #timeoutMs: number;
  /** The document cache of this snapshot, if enabled. */
  readonly memory: DocumentMemory | undefined;
  /** Alternative names of entities, if any. */
  readonly names: EntityNames | undefined;

  constructor(http: XtdbHttp, basis: Basis, { timeoutMs, memory, names }: SnapshotSettings) {
    this.#http = http;
    this.basis = basis;
    this.#timeoutMs = timeoutMs;
    this.memory = memory;
    this.names = names;
  }

  /** Returns this snapshot with alternative names for entities. */
  named(names: EntityNames): DbSnapshot {
    return new DbSnapshot(this.#http, this.basis, { timeoutMs: this.#timeoutMs, names });
  }

  /** Returns this snapshot with a cache that requests no document twice. */
  remembering(): DbSnapshot {
    return new DbSnapshot(this.#http, this.basis, {
      timeoutMs: this.#timeoutMs,
      memory: new DocumentMemory(),
      names: this.names,
    });
  }

  /**
   * Returns this database at an earlier transaction. Undefined for a later one. Needs no request,
   * because all transactions of a snapshot are indexed.
   */
  earlier(validTime: Date, txId: number): DbSnapshot | undefined {
    if (this.basis.txId === undefined || txId > this.basis.txId) return undefined;
    return new DbSnapshot(
      this.#http,
      { validTime, txId, txTime: undefined },
      { timeoutMs: this.#timeoutMs, names: this.names },
    );
  }

  /** The log of the node's transactions, including those after this snapshot's moment. */
  get log(): TransactionLog {
    return new TransactionLog(this.#http, this.#timeoutMs);
  }

  /** Reads the document of one entity. */
  async entity(id: string, options: RequestOptions = {}): Promise<StoredDocument | undefined> {
    if (this.memory !== undefined) return (await this.entities([id], options)).get(id);
    const value = await this.#send(
      { method: 'GET', path: '/entity', params: { eid: this.#eid(id) }, accept: TRANSIT },
      options,
    );
    return value === undefined ? undefined : this.#read(toDocument(value));
  }

  /**
   * Reads the documents of many entities, one query per 500 ids. Ids without a document are not
   * among the keys.
   */
  async entities(ids: readonly string[], options: RequestOptions = {}): Promise<ReadonlyMap<string, StoredDocument>> {
    const { memory } = this;
    const asked = [...new Set(ids.map(entityId))];
    const wanted = memory === undefined ? asked : asked.filter((id) => !memory.knows(id));
    const batches = Array.from({ length: Math.ceil(wanted.length / BATCH) }, (_, i) =>
      wanted.slice(i * BATCH, (i + 1) * BATCH),
    );
    const found = new Map<string, StoredDocument>();
    const worker = async (): Promise<void> => {
      for (let batch = batches.shift(); batch !== undefined; batch = batches.shift())
        await this.#entityBatch(batch, found, options);
    };
    await Promise.all(Array.from({ length: Math.min(BATCHES_IN_FLIGHT, batches.length) }, worker));
    if (memory === undefined) return found;
    for (const document of found.values()) memory.learn(document);
    memory.learnAbsent(wanted.filter((id) => !found.has(id)));
    const all = asked.flatMap((id) => found.get(id) ?? memory.get(id)?.document ?? []);
    return new Map(all.map((document) => [String(document['xt/id']), document]));
  }

  /**
   * Runs a Datalog query and merges equal rows. Convert pulled documents with `toDocument`, single
   * values with `toAttribute`.
   */
  async query(
    query: DatalogQuery,
    args: readonly EdnValue[] = [],
    options: RequestOptions = {},
  ): Promise<readonly (readonly EdnValue[])[]> {
    return distinctRows(await this.bag(query, args, options));
  }

  /**
   * Returns the rows of a query as the database returns them, with duplicates. A limit counts
   * duplicates, too.
   */
  async bag(
    query: DatalogQuery,
    args: readonly EdnValue[] = [],
    options: RequestOptions = {},
  ): Promise<readonly (readonly EdnValue[])[]> {
    const names = this.#namesNow();
    const text = encodeQuery(query, names === undefined ? args : storedArguments(args, names));
    const answer = await this.#send(
      { method: 'POST', path: '/query', body: { type: 'application/edn', text }, accept: TRANSIT },
      options,
    );
    const rows = elements(answer)?.map((row) => elements(row));
    if (rows === undefined || !rows.every((row) => row !== undefined)) {
      throw new XtdbError('bad-response', 'The database answered a query with a value that is not a list of rows.');
    }
    if (names === undefined) return rows;
    const ids = new Map(args.flat().flatMap((id) => (typeof id === 'string' ? [[names.stored(id), id] as const] : [])));
    return rows.map((row) => readRow(row, ids, names));
  }

  /**
   * Reads the versions of an entity up to this snapshot's moment, by valid time. They include
   * versions that a later transaction replaced at the same valid time. With `withDocs` each version
   * contains its document. An unknown or evicted entity has no versions.
   */
  async history(
    id: string,
    { withDocs = false, from, ...options }: HistoryOptions = {},
  ): Promise<readonly HistoryEntry[]> {
    const params = {
      eid: this.#eid(id),
      history: true,
      'sort-order': 'asc',
      'with-docs': withDocs,
      'with-corrections': true,
      'start-valid-time': from,
    };
    const value = await this.#send({ method: 'GET', path: '/entity', params, accept: TRANSIT }, options);
    const entries = elements(value);
    if (entries === undefined)
      throw new XtdbError('bad-response', 'The database answered with a value that is not a history.');
    return entries.map((entry) => {
      const read = readHistoryEntry(entry, withDocs);
      return read.document === undefined ? read : { ...read, document: this.#read(read.document) };
    });
  }

  /** Returns times and transaction of an entity's current version. */
  async entityTx(id: string, options: RequestOptions = {}): Promise<EntityTx | undefined> {
    const value = await this.#send(
      { method: 'GET', path: '/entity-tx', params: { eid: this.#eid(id) }, accept: 'application/edn' },
      options,
    );
    return value === undefined ? undefined : readVersion(value);
  }

  #eid(id: string): string {
    return entityId(this.#namesNow()?.stored(id) ?? id);
  }

  #read(document: StoredDocument): StoredDocument {
    return this.#namesNow()?.read(document) ?? document;
  }

  #namesNow(): EntityNames | undefined {
    return this.names !== undefined && holdsAt(this.names, this.basis.txId ?? BEFORE_FIRST_TX) ? this.names : undefined;
  }

  async #entityBatch(
    ids: readonly string[],
    found: Map<string, StoredDocument>,
    options: RequestOptions,
  ): Promise<void> {
    const e = sym('?e');
    let rows: readonly (readonly EdnValue[])[];
    try {
      rows = await this.bag({ find: [e, pull(e)], in: [each(e)] }, [ids], options);
    } catch (error) {
      if (!(error instanceof XtdbError) || error.code !== 'too-large' || ids.length === 1) throw error;
      const half = Math.ceil(ids.length / 2);
      await this.#entityBatch(ids.slice(0, half), found, options);
      await this.#entityBatch(ids.slice(half), found, options);
      return;
    }
    for (const [id, document] of rows) {
      if (typeof id === 'string' && isPresent(document)) found.set(id, toDocument(document));
    }
  }

  async #send(
    request: Omit<HttpRequest, 'timeoutMs' | 'signal'>,
    options: RequestOptions,
  ): Promise<EdnValue | undefined> {
    const limits = { timeoutMs: options.timeoutMs ?? this.#timeoutMs, signal: options.signal };
    const ask = (txId: number | undefined): Promise<EdnValue | undefined> =>
      this.#http.send({
        ...request,
        params: { ...request.params, 'valid-time': this.basis.validTime, 'tx-id': txId },
        ...limits,
      });
    const { txId, validTime } = this.basis;
    if (txId !== undefined) {
      try {
        return await ask(txId);
      } catch (error) {
        if (!(error instanceof XtdbError) || error.code !== 'out-of-sync') throw error;
        // Another node answered that has not indexed this transaction.
        const params = { ...request.params, 'valid-time': validTime, 'tx-id': txId };
        return askOnceIndexed(
          this.#http,
          { ...request, params, signal: limits.signal },
          { txId, timeoutMs: limits.timeoutMs },
        );
      }
    }
    try {
      return await ask(BEFORE_FIRST_TX);
    } catch (error) {
      if (!(error instanceof XtdbError) || error.code !== 'out-of-sync') throw error;
    }
    // A node that has indexed nothing rejects every transaction id. So the request is sent without
    // an id. The answer counts only if the node has still indexed nothing.
    const answer = await ask(undefined);
    const latest = await this.#http.send({
      method: 'GET',
      path: '/latest-completed-tx',
      accept: 'application/edn',
      ...limits,
    });
    return latest === undefined ? answer : ask(BEFORE_FIRST_TX);
  }
}

/**
 * Returns whether a document of the history exists. In an index that was rebuilt from the log, the
 * history may name evicted documents.
 */
const isPresent = (value: EdnValue | undefined): value is EdnValue =>
  value !== undefined && value !== null && !(value instanceof EdnMap && value.get('xtdb.api/evicted?') === true);

function readHistoryEntry(value: EdnValue, withDocs: boolean): HistoryEntry {
  const deleted = readHash(value) === NO_DOCUMENT;
  const document = value instanceof EdnMap ? value.get('xtdb.api/doc') : undefined;
  if (withDocs && !deleted && (document === undefined || document === null)) {
    throw new XtdbError('bad-response', 'A version in a history came without its document.');
  }
  return {
    ...readVersion(value),
    deleted,
    document: !deleted && isPresent(document) ? toDocument(document) : undefined,
  };
}

function readVersion(value: EdnValue): EntityTx {
  const validTime = value instanceof EdnMap ? value.get('xtdb.api/valid-time') : undefined;
  if (!(validTime instanceof Date)) throw new XtdbError('bad-response', 'A version came without its valid time.');
  const { txTime, txId } = readReceipt(value);
  return { validTime, txTime, txId };
}

function readHash(value: EdnValue): string {
  const hash = value instanceof EdnMap ? value.get('xtdb.api/content-hash') : undefined;
  const text = hash instanceof EdnTagged ? hash.value : hash;
  if (typeof text !== 'string') throw new XtdbError('bad-response', 'A version came without its hash.');
  return text;
}

import { createHash } from 'node:crypto';
import { EdnMap, EdnTagged, type EdnValue, elements, Keyword } from '../edn/values.js';
import { type StoredDocument, toDocument } from './documents.js';
import { XtdbError, type XtdbErrorCode } from './errors.js';
import type { HttpRequest, XtdbHttp } from './http.js';
import { askIndexed, type RequestOptions } from './requests.js';
import { END_OF_TIME, entityId, readReceipt, type TxReceipt } from './transactions.js';

/**
 * Type bytes of strings in the serializer of XTDB's hashes. The length follows in one byte, or in
 * two or four for longer strings.
 */
const SHORT_STRING = 105;
const MIDDLE_STRING = 16;
const LONG_STRING = 13;

function stringHead(bytes: number): Buffer {
  if (bytes < 1 << 7) return Buffer.from([SHORT_STRING, bytes]);
  const isMiddle = bytes < 1 << 15;
  const head = Buffer.alloc(isMiddle ? 3 : 5);
  head.writeUInt8(isMiddle ? MIDDLE_STRING : LONG_STRING);
  if (isMiddle) head.writeInt16BE(bytes, 1);
  else head.writeInt32BE(bytes, 1);
  return head;
}

/** Returns the hash of an entity in XTDB's transaction log and indices, as hex. */
export function entityHash(id: string): string {
  const bytes = Buffer.from(entityId(id));
  return createHash('sha1').update(stringHead(bytes.length)).update(bytes).digest('hex');
}

const PUT = 'xtdb.api/put';
/**
 * The hash that stands for no document. In a version it ends the entity; in a match it requires
 * that the entity is absent.
 */
export const NO_DOCUMENT = '0'.repeat(40);
/**
 * Whether an operation in the log writes its entity. Operations missing here may write entities
 * that the log does not name.
 */
const WRITES: ReadonlyMap<string, boolean> = new Map([
  [PUT, true],
  ['xtdb.api/delete', true],
  ['xtdb.api/evict', true],
  ['xtdb.api/match', false],
]);

/**
 * Failures that make the log unavailable. The database with the log may be down while the node
 * still answers from its index.
 */
const UNTOLD: ReadonlySet<XtdbErrorCode> = new Set(['too-large', 'unreachable', 'timeout', 'server-error']);

/** Beyond this size, reading the log costs more than it saves. */
const MOST_BYTES = 8 * 1_048_576;

const hashOf = (value: EdnValue | undefined): string | undefined =>
  value instanceof EdnTagged && typeof value.value === 'string' ? value.value : undefined;

/** The transaction that wrote an entity, and the valid time of that write. */
export interface LoggedWrite {
  readonly validTime: Date;
  readonly txTime: Date;
  readonly txId: number;
  /** The entity's first write in the part of the log that was read. */
  readonly first: Pick<LoggedWrite, 'validTime' | 'txId'>;
  /** Whether each of its writes in that part was a put whose valid time has no end. */
  readonly isKept: boolean;
  /** Whether its first write required that the entity did not exist. */
  readonly isNew: boolean;
}

/** Committed transactions, in their order, and their last write per entity hash. */
export interface LoggedChanges {
  readonly transactions: readonly TxReceipt[];
  readonly writes: ReadonlyMap<string, LoggedWrite>;
}

/** A committed transaction with the documents that it put. */
export interface LoggedTransaction {
  readonly txId: number;
  readonly txTime: Date;
  readonly puts: readonly { readonly document: StoredDocument; readonly validTime: Date }[];
}

/** Maximum bytes of an answer with documents. A single transaction may need this much. */
const MOST_WITH_DOCUMENTS = 256 * 1_048_576;

const [OPEN, CLOSE, COMMA] = [0x5b, 0x5d, 0x2c];
const [OPEN_MAP, CLOSE_MAP] = [0x7b, 0x7d];
const [QUOTE, ESCAPE] = [0x22, 0x5c];
/** The beginning of a list in transit+json. Its items are one level deeper than an array's. */
const LIST = '["~#list",[';

/** Returns the complete items of a list or array in transit+json whose end is missing. */
function wholeItems(bytes: Buffer): Buffer {
  const isList = bytes.subarray(0, LIST.length).toString('latin1') === LIST;
  const level = isList ? 2 : 1;
  const end = isList ? ']]' : ']';
  let [depth, upto] = [0, 0];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      for (at += 1; at < bytes.length && bytes[at] !== QUOTE; at += 1) if (bytes[at] === ESCAPE) at += 1;
    } else if (byte === OPEN || byte === OPEN_MAP) depth += 1;
    else if (byte === CLOSE || byte === CLOSE_MAP) depth -= 1;
    else if (byte === COMMA && depth === level) upto = at;
  }
  return upto === 0 ? Buffer.from('[]') : Buffer.concat([bytes.subarray(0, upto), Buffer.from(end)]);
}

/** The log of a node's committed transactions, which names entities by their hashes. */
export class TransactionLog {
  readonly #http: XtdbHttp;
  readonly #timeoutMs: number;
  #isUnderstood: Promise<boolean> | undefined;

  constructor(http: XtdbHttp, timeoutMs: number) {
    this.#http = http;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Returns the last write per entity hash in the transactions after `txId`. Undefined if one of
   * them has an operation missing in `WRITES`, if reading them costs too much, or if the log is
   * unavailable.
   */
  async writesAfter(txId: number, options: RequestOptions = {}): Promise<ReadonlyMap<string, LoggedWrite> | undefined> {
    const transactions = await this.#after(txId, options);
    return transactions === undefined ? undefined : writesOf(transactions);
  }

  async #after(txId: number, options: RequestOptions): Promise<readonly EdnValue[] | undefined> {
    let answer: EdnValue | undefined;
    try {
      answer = await askIndexed(this.#http, {
        method: 'GET',
        path: '/tx-log',
        params: txId < 0 ? {} : { 'after-tx-id': txId },
        accept: 'application/transit+json',
        maxAnswerBytes: MOST_BYTES,
        ...this.#limits(options),
      });
    } catch (error) {
      if (error instanceof XtdbError && UNTOLD.has(error.code)) return undefined;
      throw error;
    }
    const transactions = elements(answer);
    if (transactions === undefined)
      throw new XtdbError('bad-response', 'The database answered with a value that is not a log of transactions.');
    return transactions;
  }

  /**
   * Returns the hashes of the entities written after `txId`, up to the last transaction. Undefined
   * for the reasons of `changesAfter`.
   */
  async writtenAfter(
    txId: number,
    known: string,
    options: RequestOptions = {},
  ): Promise<ReadonlySet<string> | undefined> {
    const changes = await this.changesAfter(txId, known, options);
    return changes === undefined ? undefined : new Set(changes.writes.keys());
  }

  /**
   * Returns the transactions after `txId`, up to the last one, and the last write per entity hash.
   * Undefined if this is unknown: the node computes hashes differently, a transaction has other
   * operations, or there are too many. `known` is an entity that the node contains; its hash is
   * verified once.
   */
  async changesAfter(txId: number, known: string, options: RequestOptions = {}): Promise<LoggedChanges | undefined> {
    this.#isUnderstood ??= this.#tryHash(known, this.#limits(options));
    const [isUnderstood, transactions] = await Promise.all([
      this.#isUnderstood.catch(() => false),
      this.#after(txId, options),
    ]);
    if (!isUnderstood) this.#isUnderstood = undefined;
    const writes = isUnderstood && transactions !== undefined ? writesOf(transactions) : undefined;
    return writes === undefined ? undefined : { transactions: (transactions ?? []).map(readReceipt), writes };
  }

  /** Returns the transactions after `txId`. Undefined if that costs too much. */
  async receiptsAfter(txId: number, options: RequestOptions = {}): Promise<readonly TxReceipt[] | undefined> {
    return (await this.#after(txId, options))?.map(readReceipt);
  }

  /**
   * Returns the transactions after `txId` with their documents: as many as fit into an answer of
   * about `maxBytes`, and at least the first. Leaves out foreign and evicted documents, also those
   * with values that cannot be read.
   *
   * @throws {XtdbError}
   */
  async documentsAfter(
    txId: number,
    { maxBytes, ...options }: RequestOptions & { readonly maxBytes: number },
  ): Promise<readonly LoggedTransaction[]> {
    for (let most = maxBytes; ; most *= 4) {
      let isCut = false;
      const cut = (bytes: Buffer): Buffer => {
        isCut = true;
        return wholeItems(bytes);
      };
      const answer = await askIndexed(this.#http, {
        method: 'GET',
        path: '/tx-log',
        params: { ...(txId < 0 ? {} : { 'after-tx-id': txId }), 'with-ops?': true },
        accept: 'application/transit+json',
        isForeign: true,
        maxAnswerBytes: Math.min(most, MOST_WITH_DOCUMENTS),
        ...(most < MOST_WITH_DOCUMENTS ? { cut } : {}),
        ...this.#limits(options),
      });
      const transactions = elements(answer);
      if (transactions === undefined)
        throw new XtdbError('bad-response', 'The database answered with a value that is not a log of transactions.');
      // If even the first transaction exceeds the limit, reads again with a higher limit.
      if (transactions.length === 0 && isCut) continue;
      return transactions.map(loggedTransaction);
    }
  }

  #limits(options: RequestOptions): Pick<HttpRequest, 'timeoutMs' | 'signal'> {
    return { timeoutMs: options.timeoutMs ?? this.#timeoutMs, signal: options.signal };
  }

  async #tryHash(known: string, limits: Pick<HttpRequest, 'timeoutMs' | 'signal'>): Promise<boolean> {
    const request = {
      method: 'GET',
      path: '/entity-tx',
      params: { eid: entityId(known) },
      accept: 'application/transit+json',
    } as const;
    const answer = await this.#http.send({ ...request, ...limits });
    return answer instanceof EdnMap && hashOf(answer.get('xt/id')) === entityHash(known);
  }
}

function writesOf(transactions: readonly EdnValue[]): ReadonlyMap<string, LoggedWrite> | undefined {
  const writes = new Map<string, LoggedWrite>();
  for (const transaction of transactions) {
    const events = transaction instanceof EdnMap ? elements(transaction.get('xtdb.api/tx-events')) : undefined;
    if (events === undefined) return undefined;
    const { txId, txTime } = readReceipt(transaction);
    const absent = new Set<string>();
    for (const event of events) {
      const [operation, entity, content, from, to] = elements(event) ?? [];
      const isWrite = operation instanceof Keyword ? WRITES.get(operation.name) : undefined;
      const hash = hashOf(entity);
      if (isWrite === undefined || hash === undefined) return undefined;
      if (!isWrite) {
        // Only absence at the end of time counts: an entity that is absent earlier may exist later.
        if (hashOf(content) === NO_DOCUMENT && from instanceof Date && from.getTime() === END_OF_TIME.getTime())
          absent.add(hash);
        continue;
      }
      const validTime = from instanceof Date ? from : txTime;
      const before = writes.get(hash);
      const isPut = operation instanceof Keyword && operation.name === PUT && !(to instanceof Date);
      writes.set(hash, {
        validTime,
        txTime,
        txId,
        first: before?.first ?? { validTime, txId },
        isKept: isPut && (before?.isKept ?? true),
        isNew: before?.isNew ?? absent.has(hash),
      });
    }
  }
  return writes;
}

function loggedTransaction(transaction: EdnValue): LoggedTransaction {
  const receipt = readReceipt(transaction);
  const operations = transaction instanceof EdnMap ? elements(transaction.get('xtdb.api/tx-ops')) : undefined;
  const puts = (operations ?? []).flatMap((operation) => {
    const [name, value, from] = elements(operation) ?? [];
    if (!(name instanceof Keyword) || name.name !== PUT) return [];
    try {
      return [{ document: toDocument(value ?? null), validTime: from instanceof Date ? from : receipt.txTime }];
    } catch (error) {
      // Skips documents that other programs keep in the same database.
      if (error instanceof XtdbError) return [];
      throw error;
    }
  });
  return { ...receipt, puts };
}

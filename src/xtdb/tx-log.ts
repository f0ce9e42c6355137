import { createHash } from 'node:crypto';
import { EdnMap, EdnTagged, type EdnValue, elements, Keyword } from '../edn/values.js';
import { XtdbError, type XtdbErrorCode } from './errors.js';
import type { HttpRequest, XtdbHttp } from './http.js';
import { askOnceIndexed, type RequestOptions } from './requests.js';
import { END_OF_TIME, entityId, readReceipt } from './transactions.js';

/** How the serializer that XTDB makes its hashes with marks a string: by the bytes that its length takes. */
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

/** The hash that XTDB's log of transactions and its indices call an entity by, as hex. */
export function entityHash(id: string): string {
  const bytes = Buffer.from(entityId(id));
  return createHash('sha1').update(stringHead(bytes.length)).update(bytes).digest('hex');
}

const PUT = 'xtdb.api/put';
/** The hash of no document: what a version that ended something has, and what is matched where there must be none. */
export const NO_DOCUMENT = '0'.repeat(40);
/** Whether an operation in the log writes its entity; one that is not here may write what its event does not say. */
const WRITES: ReadonlyMap<string, boolean> = new Map([
  [PUT, true],
  ['xtdb.api/delete', true],
  ['xtdb.api/evict', true],
  ['xtdb.api/match', false],
]);

/** Failures that leave untold what the log says: the database that holds it may be away, and what the node has taken in is read all the same. */
const UNTOLD: ReadonlySet<XtdbErrorCode> = new Set(['too-large', 'unreachable', 'timeout', 'server-error']);

/** A log that takes more than this is dearer to read than what it tells. */
const MOST_BYTES = 8 * 1_048_576;

const hashOf = (value: EdnValue | undefined): string | undefined =>
  value instanceof EdnTagged && typeof value.value === 'string' ? value.value : undefined;

/** When an entity was written: by which transaction, and from when on that holds. */
export interface LoggedWrite {
  readonly validTime: Date;
  readonly txTime: Date;
  readonly txId: number;
  /** The first of its writes that were read. */
  readonly first: Pick<LoggedWrite, 'validTime' | 'txId'>;
  /** Whether each of its writes that were read put it, for good: none ended or removed it. */
  readonly isKept: boolean;
  /** Whether the first of them went through only because there was no such entity. */
  readonly isNew: boolean;
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
   * The last write of each entity that the transactions after one wrote, by its hash. Undefined where one of them has operations of another kind, where
   * there are more of them than it pays to read, and where the log cannot be read now.
   */
  async writesAfter(txId: number, options: RequestOptions = {}): Promise<ReadonlyMap<string, LoggedWrite> | undefined> {
    const limits = this.#limits(options);
    const request = { method: 'GET', path: '/tx-log', params: { 'after-tx-id': txId }, accept: 'application/transit+json' } as const;
    let answer: EdnValue | undefined;
    try {
      const { awaited } = this.#http;
      const asked = { ...request, maxAnswerBytes: MOST_BYTES };
      answer =
        awaited === undefined
          ? await this.#http.send({ ...asked, ...limits })
          : await askOnceIndexed(this.#http, { ...asked, signal: limits.signal }, { txId: awaited, timeoutMs: limits.timeoutMs });
    } catch (error) {
      if (error instanceof XtdbError && UNTOLD.has(error.code)) return undefined;
      throw error;
    }
    const transactions = elements(answer);
    if (transactions === undefined)
      throw new XtdbError('bad-response', 'The database answered with something that is no log of transactions.');
    return writesOf(transactions);
  }

  /**
   * The hashes of the entities that the transactions after one wrote, up to the last one. Undefined where that cannot be told: a node that makes its hashes
   * otherwise, a transaction with operations of another kind, or too many of them. `known` is an entity that the node holds, by which its hashes are tried once.
   */
  async writtenAfter(txId: number, known: string, options: RequestOptions = {}): Promise<ReadonlySet<string> | undefined> {
    this.#isUnderstood ??= this.#tryHash(known, this.#limits(options));
    const [isUnderstood, writes] = await Promise.all([this.#isUnderstood.catch(() => false), this.writesAfter(txId, options)]);
    if (!isUnderstood) this.#isUnderstood = undefined;
    return isUnderstood && writes !== undefined ? new Set(writes.keys()) : undefined;
  }

  #limits(options: RequestOptions): Pick<HttpRequest, 'timeoutMs' | 'signal'> {
    return { timeoutMs: options.timeoutMs ?? this.#timeoutMs, signal: options.signal };
  }

  async #tryHash(known: string, limits: Pick<HttpRequest, 'timeoutMs' | 'signal'>): Promise<boolean> {
    const request = { method: 'GET', path: '/entity-tx', params: { eid: entityId(known) }, accept: 'application/transit+json' } as const;
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
        // One that is matched earlier may stand later.
        if (hashOf(content) === NO_DOCUMENT && from instanceof Date && from.getTime() === END_OF_TIME.getTime()) absent.add(hash);
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

import { EdnMap, elements } from '../edn/values.js';
import type { NodeAddress } from './address.js';
import { type Basis, DbSnapshot } from './db-snapshot.js';
import { XtdbError } from './errors.js';
import { XtdbHttp } from './http.js';
import { takeListElements } from './list-prefix.js';
import { askOnceIndexed, type NodeStatus, type RequestOptions, readStatus } from './requests.js';
import {
  encodeTransaction,
  readLogEntry,
  readReceipt,
  type TxLogEntry,
  type TxOp,
  type TxOutcome,
  type TxReceipt,
} from './transactions.js';

/** How a client behaves; every value has a default. */
export interface XtdbClientOptions {
  /** The limit of a request that sets none of its own, in milliseconds (30,000). */
  readonly requestTimeoutMs?: number;
  /** How many requests are under way at once (8); requests that wait for a transaction have four connections more. */
  readonly connections?: number;
  /** The largest submission, in bytes (64 MiB): what the node accepts. */
  readonly maxRequestBytes?: number;
  /** The largest answer, in bytes (256 MiB). */
  readonly maxAnswerBytes?: number;
}

/** What to read of the transaction log. */
export interface TxLogOptions extends RequestOptions {
  /** Only transactions after this one. */
  readonly afterTxId?: number;
  /** With the operations and their documents. */
  readonly withOps?: boolean;
  /** At most so many entries; reading stops there. */
  readonly limit?: number;
}

/** How a transaction is executed. */
export interface ExecuteOptions extends RequestOptions {
  /** Told once the transaction is in the log, before its outcome is known. */
  readonly onReceipt?: (receipt: TxReceipt) => void;
}

/**
 * The client of one XTDB node. Everything is written here; everything is read from a `DbSnapshot`.
 *
 * Each method has a time limit and takes an AbortSignal, and throws XtdbError with a `code` from a closed set. Once closed it answers every
 * call with `closed`.
 */
export interface XtdbClient {
  /** What the node says of itself. Answers also when it has stopped indexing: look at `ingesterFailed`. */
  status(options?: RequestOptions): Promise<NodeStatus>;
  /**
   * Submits a transaction. The receipt is no commit. Never sent twice; if the receipt was lost, the error's `outcomeUnknown` is true.
   */
  submit(ops: readonly TxOp[], options?: RequestOptions): Promise<TxReceipt>;
  /** What became of a transaction, learned by asking until it is indexed or the limit (60 s unless given) has passed. */
  awaitOutcome(txId: number, options?: RequestOptions): Promise<TxOutcome>;
  /**
   * Submits and learns the outcome. The limit holds for each of the two. If only the outcome could not be learned, the error's `outcomeUnknown`
   * is true and `txId` names the transaction.
   */
  execute(ops: readonly TxOp[], options?: ExecuteOptions): Promise<{ readonly receipt: TxReceipt; readonly outcome: TxOutcome }>;
  /**
   * The database at a moment (default: now, and all that is indexed), pinned once. It always sees what this client has submitted, unless an
   * earlier `txId` was asked for.
   */
  db(basis?: Partial<Pick<Basis, 'validTime' | 'txId' | 'txTime'>>, options?: RequestOptions): Promise<DbSnapshot>;
  /** The database as of a transaction that is known to be indexed: no request, and nothing is awaited. */
  indexed(validTime: Date, txId: number): DbSnapshot;
  /** The latest transaction that is indexed; `undefined` on an empty node. */
  latestCompletedTx(options?: RequestOptions): Promise<TxReceipt | undefined>;
  /** The id of the latest transaction that was submitted, indexed or not; `undefined` on an empty node. */
  latestSubmittedTx(options?: RequestOptions): Promise<number | undefined>;
  /** The committed transactions that are indexed, in their order, this client's own included. */
  txLog(options?: TxLogOptions): Promise<readonly TxLogEntry[]>;
  /** Ends every connection and every request under way. Idempotent. */
  close(): Promise<void>;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_AWAIT_MS = 60_000;
const MIB = 1024 * 1024;

/**
 * Makes a client. Nothing is opened before the first request.
 *
 * @param address where the node listens, or a function that finds out (or starts it): it is asked before the first request and again after a
 * connection failed
 */
export const createXtdbClient = (address: NodeAddress | (() => Promise<NodeAddress>), options: XtdbClientOptions = {}): XtdbClient =>
  new HttpXtdbClient(address, options);

class HttpXtdbClient implements XtdbClient {
  readonly #http: XtdbHttp;
  readonly #timeoutMs: number;
  #latestOwnTx: number | undefined;

  constructor(address: NodeAddress | (() => Promise<NodeAddress>), options: XtdbClientOptions) {
    this.#timeoutMs = options.requestTimeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#http = new XtdbHttp(address, {
      connections: options.connections ?? 8,
      maxRequestBytes: options.maxRequestBytes ?? 64 * MIB,
      maxAnswerBytes: options.maxAnswerBytes ?? 256 * MIB,
    });
  }

  async status(options: RequestOptions = {}): Promise<NodeStatus> {
    return readStatus(await this.#http.send({ method: 'GET', path: '/status', accept: 'application/edn', ...this.#limits(options) }));
  }

  async submit(ops: readonly TxOp[], options: RequestOptions = {}): Promise<TxReceipt> {
    const text = encodeTransaction(ops);
    const answer = await this.#http.send({
      method: 'POST',
      path: '/submit-tx',
      body: { type: 'application/transit+json', text },
      accept: 'application/edn',
      writes: true,
      ...this.#limits(options),
    });
    const receipt = readReceipt(answer);
    this.#latestOwnTx = Math.max(this.#latestOwnTx ?? receipt.txId, receipt.txId);
    return receipt;
  }

  async awaitOutcome(txId: number, options: RequestOptions = {}): Promise<TxOutcome> {
    const answer = await askOnceIndexed(
      this.#http,
      { method: 'GET', path: '/tx-committed', params: { 'tx-id': txId }, accept: 'application/edn', signal: options.signal },
      txId,
      options.timeoutMs ?? DEFAULT_AWAIT_MS,
    );
    const committed = answer instanceof EdnMap ? answer.get('tx-committed?') : undefined;
    if (typeof committed !== 'boolean') throw new XtdbError('bad-response', `The node does not say what became of transaction ${txId}.`);
    return committed ? 'committed' : 'aborted';
  }

  async execute(
    ops: readonly TxOp[],
    { onReceipt, ...options }: ExecuteOptions = {},
  ): Promise<{ readonly receipt: TxReceipt; readonly outcome: TxOutcome }> {
    const receipt = await this.submit(ops, options);
    onReceipt?.(receipt);
    try {
      return { receipt, outcome: await this.awaitOutcome(receipt.txId, options) };
    } catch (error) {
      throw error instanceof XtdbError ? error.withUnknownOutcome(receipt.txId) : error;
    }
  }

  async db(basis: Partial<Pick<Basis, 'validTime' | 'txId' | 'txTime'>> = {}, options: RequestOptions = {}): Promise<DbSnapshot> {
    const params = { 'valid-time': basis.validTime, 'tx-id': basis.txId, 'tx-time': basis.txTime };
    const request = { method: 'GET', path: '/db', params, accept: 'application/edn' } as const;
    const awaited = basis.txId ?? this.#latestOwnTx;
    const limits = this.#limits(options);
    const answer =
      awaited === undefined
        ? await this.#http.send({ ...request, ...limits })
        : await askOnceIndexed(this.#http, { ...request, signal: options.signal }, awaited, limits.timeoutMs);
    const validTime = answer instanceof EdnMap ? answer.get('xtdb.api/valid-time') : undefined;
    const tx = answer instanceof EdnMap ? answer.get('xtdb.api/tx') : undefined;
    if (!(validTime instanceof Date)) throw new XtdbError('bad-response', 'GET /_xtdb/db: the answer names no valid time.');
    const txId = tx instanceof EdnMap ? tx.get('xtdb.api/tx-id') : undefined;
    const txTime = tx instanceof EdnMap ? tx.get('xtdb.api/tx-time') : undefined;
    const pinned = { validTime, txId: typeof txId === 'number' ? txId : undefined, txTime: txTime instanceof Date ? txTime : undefined };
    return new DbSnapshot(this.#http, pinned, this.#timeoutMs);
  }

  indexed(validTime: Date, txId: number): DbSnapshot {
    return new DbSnapshot(this.#http, { validTime, txId, txTime: undefined }, this.#timeoutMs);
  }

  async latestCompletedTx(options: RequestOptions = {}): Promise<TxReceipt | undefined> {
    const answer = await this.#http.send({
      method: 'GET',
      path: '/latest-completed-tx',
      accept: 'application/edn',
      ...this.#limits(options),
    });
    return answer === undefined ? undefined : readReceipt(answer);
  }

  async latestSubmittedTx(options: RequestOptions = {}): Promise<number | undefined> {
    const answer = await this.#http.send({
      method: 'GET',
      path: '/latest-submitted-tx',
      accept: 'application/edn',
      ...this.#limits(options),
    });
    const txId = answer instanceof EdnMap ? answer.get('xtdb.api/tx-id') : undefined;
    if (answer !== undefined && typeof txId !== 'number') throw new XtdbError('bad-response', 'The node names no latest transaction.');
    return typeof txId === 'number' ? txId : undefined;
  }

  async txLog(options: TxLogOptions = {}): Promise<readonly TxLogEntry[]> {
    const { limit } = options;
    if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 1))
      throw new XtdbError('bad-request', 'A limit is a whole number from 1.');
    const limits = this.#limits(options);
    if (this.#latestOwnTx !== undefined) {
      const request = { method: 'GET', path: '/latest-completed-tx', accept: 'application/edn', signal: options.signal } as const;
      await askOnceIndexed(this.#http, request, this.#latestOwnTx, limits.timeoutMs);
    }
    const answer = await this.#http.send({
      method: 'GET',
      path: '/tx-log',
      params: { 'after-tx-id': options.afterTxId, 'with-ops?': options.withOps === true },
      accept: 'application/transit+json',
      ...(limit === undefined ? {} : { enough: () => takeListElements(limit) }),
      ...limits,
    });
    const entries = elements(answer);
    if (entries === undefined) throw new XtdbError('bad-response', 'GET /_xtdb/tx-log: the answer is no list.');
    return (limit === undefined ? entries : entries.slice(0, limit)).map(readLogEntry);
  }

  close(): Promise<void> {
    return this.#http.close();
  }

  #limits(options: RequestOptions): { readonly timeoutMs: number; readonly signal: AbortSignal | undefined } {
    return { timeoutMs: options.timeoutMs ?? this.#timeoutMs, signal: options.signal };
  }
}

import { EdnMap, type EdnValue } from '../edn/values.js';
import type { Telemetry } from '../telemetry/telemetry.js';
import { defined } from '../values/defined.js';
import { type Basis, DbSnapshot } from './db-snapshot.js';
import { XtdbError } from './errors.js';
import { XtdbHttp } from './http.js';
import type { AskedAddress } from './no-node.js';
import { askIndexed, askOnceIndexed, type NodeStatus, type RequestOptions, readStatus } from './requests.js';
import { encodeTransaction, readReceipt, type TxOp, type TxOutcome, type TxReceipt } from './transactions.js';
import { TransactionLog } from './tx-log.js';

/** Options of a client; every value has a default. */
export interface XtdbClientOptions {
  /** Default limit of a request in milliseconds (30,000). */
  readonly requestTimeoutMs?: number;
  /**
   * Maximum concurrent requests (8). Requests that wait for a transaction have four more
   * connections.
   */
  readonly connections?: number;
  /** Maximum size of a submission in bytes (64 MiB, the node's limit). */
  readonly maxRequestBytes?: number;
  /** Maximum size of an answer in bytes (256 MiB). */
  readonly maxAnswerBytes?: number;
  /** Telemetry sink for requests; none if absent. */
  readonly telemetry?: Telemetry;
}

/** Options of executing a transaction. */
export interface ExecuteOptions extends RequestOptions {
  /** Called once the transaction is in the log, before its outcome is known. */
  readonly onReceipt?: (receipt: TxReceipt) => void;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_AWAIT_MS = 60_000;
/**
 * Maximum time in milliseconds that the first read waits for the log's newest transaction. So a log
 * that is unavailable or far ahead does not block readers.
 */
const BEGIN_MS = 3_000;
const MIB = 1024 * 1024;

/**
 * The client of one XTDB node. Writes go through it; reads go through a `DbSnapshot`. Connections
 * open with the first request. Each method has a time limit and takes an AbortSignal.
 *
 * @throws {XtdbError} every code – from each method; `closed` once the client is closed
 */
export class XtdbClient {
  readonly #http: XtdbHttp;
  readonly #timeoutMs: number;
  /** The log of the node's transactions. */
  readonly log: TransactionLog;
  #latestOwnTx: number | undefined;
  #beginning: Promise<void> | undefined;
  #hasBegun = false;

  /**
   * `address` is where the node listens, or a function that finds or starts the node. The function
   * is called before the first request and again after a failed connection. `NO_NODE` stands for an
   * empty database.
   */
  constructor(address: AskedAddress, options: XtdbClientOptions = {}) {
    this.#timeoutMs = options.requestTimeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#http = new XtdbHttp(address, {
      connections: options.connections ?? 8,
      maxRequestBytes: options.maxRequestBytes ?? 64 * MIB,
      maxAnswerBytes: options.maxAnswerBytes ?? 256 * MIB,
      ...defined({ telemetry: options.telemetry }),
    });
    this.log = new TransactionLog(this.#http, this.#timeoutMs);
  }

  /**
   * Returns the node's status. It also answers after its indexer stopped: check `ingesterFailed`.
   */
  async status(options: RequestOptions = {}): Promise<NodeStatus> {
    return readStatus(await this.#get('/status', options));
  }

  /**
   * Submits a transaction. The receipt is not a commit. The submission is never sent twice; if the
   * receipt was lost, the error's `outcomeUnknown` is true.
   */
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
    this.#http.saw(receipt.txId);
    return receipt;
  }

  /**
   * Returns the outcome of a transaction. Polls until it is indexed or the limit (default 60 s) has
   * passed.
   */
  async awaitOutcome(txId: number, options: RequestOptions = {}): Promise<TxOutcome> {
    const request = {
      method: 'GET',
      path: '/tx-committed',
      params: { 'tx-id': txId },
      accept: 'application/edn',
      signal: options.signal,
    } as const;
    const answer = await askOnceIndexed(this.#http, request, {
      txId,
      timeoutMs: options.timeoutMs ?? DEFAULT_AWAIT_MS,
    });
    const committed = answer instanceof EdnMap ? answer.get('tx-committed?') : undefined;
    if (typeof committed !== 'boolean')
      throw new XtdbError('bad-response', `The node does not report the outcome of transaction ${txId}.`);
    return committed ? 'committed' : 'aborted';
  }

  /**
   * Submits a transaction and awaits its outcome. The limit applies to the submission and to the
   * wait for the outcome separately. If only the outcome is unknown, the error's `outcomeUnknown`
   * is true and `txId` names the transaction.
   */
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

  /**
   * Returns the database at a fixed point on both clocks. Default: now, with all indexed
   * transactions. It always includes this client's submissions and everything it has seen through
   * any node, unless an earlier `txId` is requested. If several nodes may answer, the first read
   * also waits some seconds until the node has indexed the log's newest transaction.
   */
  async db(
    basis: Partial<Pick<Basis, 'validTime' | 'txId' | 'txTime'>> = {},
    options: RequestOptions = {},
  ): Promise<DbSnapshot> {
    const params = { 'valid-time': basis.validTime, 'tx-id': basis.txId, 'tx-time': basis.txTime };
    const request = { method: 'GET', path: '/db', params, accept: 'application/edn' } as const;
    const awaited = basis.txId ?? this.#http.awaited ?? this.#latestOwnTx;
    const answer = await askIndexed(this.#http, { ...request, ...this.#limits(options) }, awaited);
    const validTime = answer instanceof EdnMap ? answer.get('xtdb.api/valid-time') : undefined;
    const tx = answer instanceof EdnMap ? answer.get('xtdb.api/tx') : undefined;
    if (!(validTime instanceof Date))
      throw new XtdbError('bad-response', 'GET /_xtdb/db: the answer names no valid time.');
    const txId = tx instanceof EdnMap ? tx.get('xtdb.api/tx-id') : undefined;
    const txTime = tx instanceof EdnMap ? tx.get('xtdb.api/tx-time') : undefined;
    if (typeof txId === 'number') this.#http.saw(txId);
    if (!this.#hasBegun && basis.txId === undefined && this.#http.mayMove) {
      this.#beginning ??= this.#begin();
      await this.#beginning;
      this.#hasBegun = true;
      if ((this.#http.awaited ?? -1) > (typeof txId === 'number' ? txId : -1)) return this.db(basis, options);
    }
    const pinned = {
      validTime,
      txId: typeof txId === 'number' ? txId : undefined,
      txTime: txTime instanceof Date ? txTime : undefined,
    };
    return new DbSnapshot(this.#http, pinned, { timeoutMs: this.#timeoutMs });
  }

  /**
   * Returns the database as of a transaction that is known to be indexed. Makes no request and does
   * not wait.
   */
  indexed(validTime: Date, txId: number): DbSnapshot {
    return new DbSnapshot(this.#http, { validTime, txId, txTime: undefined }, { timeoutMs: this.#timeoutMs });
  }

  /** Returns the latest indexed transaction; undefined on an empty node. */
  async latestCompletedTx(options: RequestOptions = {}): Promise<TxReceipt | undefined> {
    const request = { method: 'GET', path: '/latest-completed-tx', accept: 'application/edn' } as const;
    const answer = await askIndexed(this.#http, { ...request, ...this.#limits(options) });
    if (answer === undefined) return undefined;
    const latest = readReceipt(answer);
    this.#http.saw(latest.txId);
    return latest;
  }

  /** Ends every connection and every pending request. Idempotent. */
  close(): Promise<void> {
    return this.#http.close();
  }

  /**
   * Waits until the node has indexed the log's newest transaction. Another process may have just
   * written, through another node, the state from which this process continues.
   */
  async #begin(): Promise<void> {
    try {
      const submitted = await this.#get('/latest-submitted-tx', { timeoutMs: BEGIN_MS });
      const txId = submitted instanceof EdnMap ? submitted.get('xtdb.api/tx-id') : undefined;
      if (typeof txId !== 'number') return;
      const request = { method: 'GET', path: '/latest-completed-tx', accept: 'application/edn' } as const;
      await askOnceIndexed(this.#http, request, { txId, timeoutMs: BEGIN_MS });
      this.#http.saw(txId);
    } catch (error) {
      if (!(error instanceof XtdbError)) throw error;
    }
  }

  #get(path: string, options: RequestOptions): Promise<EdnValue | undefined> {
    return this.#http.send({ method: 'GET', path, accept: 'application/edn', ...this.#limits(options) });
  }

  #limits(options: RequestOptions): { readonly timeoutMs: number; readonly signal: AbortSignal | undefined } {
    return { timeoutMs: options.timeoutMs ?? this.#timeoutMs, signal: options.signal };
  }
}

import { EdnMap, type EdnValue } from '../edn/values.js';
import type { Telemetry } from '../telemetry/telemetry.js';
import { defined } from '../values/defined.js';
import type { NodeAddress } from './address.js';
import { type Basis, DbSnapshot } from './db-snapshot.js';
import { XtdbError } from './errors.js';
import { XtdbHttp } from './http.js';
import { askOnceIndexed, type NodeStatus, type RequestOptions, readStatus } from './requests.js';
import { encodeTransaction, readReceipt, type TxOp, type TxOutcome, type TxReceipt } from './transactions.js';
import { TransactionLog } from './tx-log.js';

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
  /** Whom it tells what it asks; nobody when absent. */
  readonly telemetry?: Telemetry;
}

/** How a transaction is executed. */
export interface ExecuteOptions extends RequestOptions {
  /** Called once the transaction is in the log, before its outcome is known. */
  readonly onReceipt?: (receipt: TxReceipt) => void;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_AWAIT_MS = 60_000;
/** How long the first read waits for what the log held then, milliseconds; a log that is away or far ahead keeps nobody from reading. */
const BEGIN_MS = 3_000;
const MIB = 1024 * 1024;

/**
 * The client of one XTDB node. Everything is written here; everything is read from a `DbSnapshot`. Nothing is opened before the first request, and each
 * method has a time limit and takes an AbortSignal.
 *
 * @throws {XtdbError} every code – from each method; `closed` once the client is closed
 */
export class XtdbClient {
  readonly #http: XtdbHttp;
  readonly #timeoutMs: number;
  /** What its transactions wrote, without their documents. */
  readonly log: TransactionLog;
  #latestOwnTx: number | undefined;
  #beginning: Promise<void> | undefined;
  #hasBegun = false;

  /** `address` is where the node listens, or a function that finds out (or starts it): called before the first request and again after a connection failed. */
  constructor(address: NodeAddress | (() => Promise<NodeAddress>), options: XtdbClientOptions = {}) {
    this.#timeoutMs = options.requestTimeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#http = new XtdbHttp(address, {
      connections: options.connections ?? 8,
      maxRequestBytes: options.maxRequestBytes ?? 64 * MIB,
      maxAnswerBytes: options.maxAnswerBytes ?? 256 * MIB,
      ...defined({ telemetry: options.telemetry }),
    });
    this.log = new TransactionLog(this.#http, this.#timeoutMs);
  }

  /** What the node says of itself. Answers also when it has stopped indexing: look at `ingesterFailed`. */
  async status(options: RequestOptions = {}): Promise<NodeStatus> {
    return readStatus(await this.#get('/status', options));
  }

  /** Submits a transaction. The receipt is no commit. Never sent twice; if the receipt was lost, the error's `outcomeUnknown` is true. */
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

  /** What became of a transaction, learned by asking until it is indexed or the limit (60 s unless given) has passed. */
  async awaitOutcome(txId: number, options: RequestOptions = {}): Promise<TxOutcome> {
    const request = {
      method: 'GET',
      path: '/tx-committed',
      params: { 'tx-id': txId },
      accept: 'application/edn',
      signal: options.signal,
    } as const;
    const answer = await askOnceIndexed(this.#http, request, { txId, timeoutMs: options.timeoutMs ?? DEFAULT_AWAIT_MS });
    const committed = answer instanceof EdnMap ? answer.get('tx-committed?') : undefined;
    if (typeof committed !== 'boolean') throw new XtdbError('bad-response', `The node does not say what became of transaction ${txId}.`);
    return committed ? 'committed' : 'aborted';
  }

  /**
   * Submits and learns the outcome. The limit holds for each of the two. If only the outcome could not be learned, the error's `outcomeUnknown` is true
   * and `txId` names the transaction.
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
   * The database at a moment (default: now, and all that is indexed), pinned once. It always sees what this client has submitted and what it has seen, through whichever
   * node, unless an earlier `txId` was asked for. Where several nodes may answer, it also sees what the log held when this client first read, whoever wrote that, as far
   * as a node has come to it within some seconds.
   */
  async db(basis: Partial<Pick<Basis, 'validTime' | 'txId' | 'txTime'>> = {}, options: RequestOptions = {}): Promise<DbSnapshot> {
    const params = { 'valid-time': basis.validTime, 'tx-id': basis.txId, 'tx-time': basis.txTime };
    const request = { method: 'GET', path: '/db', params, accept: 'application/edn' } as const;
    const awaited = basis.txId ?? this.#http.awaited ?? this.#latestOwnTx;
    const limits = this.#limits(options);
    const answer =
      awaited === undefined
        ? await this.#http.send({ ...request, ...limits })
        : await askOnceIndexed(this.#http, { ...request, signal: options.signal }, { txId: awaited, timeoutMs: limits.timeoutMs });
    const validTime = answer instanceof EdnMap ? answer.get('xtdb.api/valid-time') : undefined;
    const tx = answer instanceof EdnMap ? answer.get('xtdb.api/tx') : undefined;
    if (!(validTime instanceof Date)) throw new XtdbError('bad-response', 'GET /_xtdb/db: the answer names no valid time.');
    const txId = tx instanceof EdnMap ? tx.get('xtdb.api/tx-id') : undefined;
    const txTime = tx instanceof EdnMap ? tx.get('xtdb.api/tx-time') : undefined;
    if (typeof txId === 'number') this.#http.saw(txId);
    if (!this.#hasBegun && basis.txId === undefined && this.#http.mayMove) {
      this.#beginning ??= this.#begin();
      await this.#beginning;
      this.#hasBegun = true;
      if ((this.#http.awaited ?? -1) > (typeof txId === 'number' ? txId : -1)) return this.db(basis, options);
    }
    const pinned = { validTime, txId: typeof txId === 'number' ? txId : undefined, txTime: txTime instanceof Date ? txTime : undefined };
    return new DbSnapshot(this.#http, pinned, { timeoutMs: this.#timeoutMs });
  }

  /** The database as of a transaction that is known to be indexed: no request, and nothing is awaited. */
  indexed(validTime: Date, txId: number): DbSnapshot {
    return new DbSnapshot(this.#http, { validTime, txId, txTime: undefined }, { timeoutMs: this.#timeoutMs });
  }

  /** The latest transaction that is indexed; undefined on an empty node. */
  async latestCompletedTx(options: RequestOptions = {}): Promise<TxReceipt | undefined> {
    const awaited = this.#http.awaited;
    const request = { method: 'GET', path: '/latest-completed-tx', accept: 'application/edn' } as const;
    const limits = this.#limits(options);
    const answer =
      awaited === undefined
        ? await this.#http.send({ ...request, ...limits })
        : await askOnceIndexed(this.#http, { ...request, signal: options.signal }, { txId: awaited, timeoutMs: limits.timeoutMs });
    if (answer === undefined) return undefined;
    const latest = readReceipt(answer);
    this.#http.saw(latest.txId);
    return latest;
  }

  /** Ends every connection and every request under way. Idempotent. */
  close(): Promise<void> {
    return this.#http.close();
  }

  /** Another process may just have written through another node what this one is to go on from. */
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

import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import { counted } from '../values/counted.js';
import { defined } from '../values/defined.js';
import { XtdbError, type XtdbErrorCode } from '../xtdb/errors.js';
import type { TxOp } from '../xtdb/transactions.js';
import type { XtdbClient } from '../xtdb/xtdb-client.js';
import { StoreError } from './errors.js';

/**
 * Records the transactions of this client, to detect writes of other clients between them. Forgets
 * the oldest, which then count as another client's.
 */
export class OwnTransactions {
  readonly #ids = new LRUCache<number, true>(counted(50_000));
  readonly #sent = new LRUCache<number, true>(counted(50_000));

  add(txId: number): void {
    this.#ids.set(txId, true);
  }

  /** Records a transaction in the log whose outcome is not known yet. */
  sent(txId: number): void {
    this.#sent.set(txId, true);
  }

  /**
   * Returns the same as `cover`, but also counts aborted transactions and those with an unknown
   * outcome.
   */
  coverSent(from: number, to: number): boolean {
    return every(from, to, (id) => this.#ids.has(id) || this.#sent.has(id));
  }

  /**
   * Returns whether this client made every transaction after `from` up to `to`. Returns false for
   * ids with gaps, which logs other than XTDB's own have.
   */
  cover(from: number, to: number): boolean {
    return every(from, to, (id) => this.#ids.has(id));
  }
}

/** Returns whether a predicate holds for every number after `from` up to `to`. */
function every(from: number, to: number, holds: (id: number) => boolean): boolean {
  for (let id = from + 1; id <= to; id++) if (!holds(id)) return false;
  return true;
}

/**
 * The result of a plan: the operations of one transaction, possibly empty, and the value to return
 * after the commit.
 */
export interface Planned<Result> {
  readonly ops: readonly TxOp[];
  readonly result: Result;
}

/**
 * Decides the write from the current state of the database. Called again if a guard aborted the
 * transaction or its outcome was lost. The plan must therefore check which data already exists.
 */
export type Plan<Result> = (attempt: number) => Promise<Planned<Result>>;

/** A committed write, or one without operations (`txId` undefined). */
export interface Written<Result> {
  readonly result: Result;
  readonly txId: number | undefined;
}

/** Behaviour of a write while the database is unreachable. */
export interface WriteOptions {
  /** Retries until the database answers instead of failing. Stops only when the path closes. */
  readonly persistent?: boolean;
  /** Called with the error of every failed attempt of a persistent write. */
  readonly onOutage?: (error: XtdbError) => void;
}

/** Callbacks of a pipelined write. */
export interface PipelineOptions<Result> {
  /**
   * Called after the transaction is in the log and before the next write is planned, so that the
   * next plan can depend on it.
   */
  readonly onSubmitted: (result: Result) => void;
  /** Called with the error of every failed attempt. */
  readonly onOutage?: (error: XtdbError) => void;
}

interface Submitted<Result> extends Written<Result> {
  readonly plan: Plan<Result>;
}

/**
 * Maximum number of times that the same operations are refused before the write fails. If a
 * competing writer were the reason, the plan would return other operations.
 */
const SAME_REFUSED = 8;
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 1_000;
const LONGEST_CONFLICT_PAUSE_MS = 250;
/** Maximum number of pipelined transactions with an unknown outcome. */
const MOST_IN_FLIGHT = 16;

/** Whether the same request may succeed later. */
const PASSES: Readonly<Record<XtdbErrorCode, boolean>> = {
  unreachable: true,
  timeout: true,
  busy: true,
  'server-error': true,
  'ingester-failed': true,
  'cut-off': true,
  'bad-response': true,
  'out-of-sync': true,
  unauthorised: true,
  aborted: false,
  closed: false,
  forbidden: false,
  'too-large': false,
  'bad-request': false,
};

/**
 * Returns whether an error means that the database rejects the write itself. False for a closed
 * client or an outage.
 */
export function isRefusal(error: unknown): boolean {
  if (error instanceof XtdbError) return !PASSES[error.code] && error.code !== 'closed' && error.code !== 'aborted';
  return !(error instanceof StoreError) || error.code !== 'closed';
}

const closedError = (): StoreError => new StoreError('closed', 'the client is closed; open a new one to write');

/**
 * Submits all transactions of a client (decision H5). Writes of one lane run in the order of their
 * calls. Lanes do not wait for each other. Each write is one transaction, whose outcome the path
 * queries.
 */
export class WritePath {
  /** The transactions committed through this path. */
  readonly own = new OwnTransactions();
  readonly #xtdb: XtdbClient;
  readonly #beforePlan: () => Promise<void>;
  readonly #lanes = new Map<string, Promise<unknown>>();
  readonly #stop = new AbortController();
  #closed = false;
  /** Resolves once every pipelined write is in the log. */
  #submitted: Promise<unknown> = Promise.resolve();
  readonly #inFlight: Promise<unknown>[] = [];
  /** Resolves once every pipelined write has its outcome. */
  #answered: Promise<void> = Promise.resolve();

  /** `beforePlan` runs before each attempt to plan a write. */
  constructor(xtdb: XtdbClient, beforePlan: () => Promise<void>) {
    this.#xtdb = xtdb;
    this.#beforePlan = beforePlan;
  }

  #checked<Result>(plan: Plan<Result>): Plan<Result> {
    return async (attempt) => {
      await this.#beforePlan();
      return plan(attempt);
    };
  }

  /**
   * Writes after all earlier writes of this lane. If a guard fails, the write is planned again as
   * long as the plan changes. Otherwise it rejects with StoreError `conflict`.
   *
   * Also rejects with any error of the plan. A write that is not persistent rejects with the
   * XtdbError that hid its outcome.
   */
  write<Result>(lane: string, plan: Plan<Result>, options: WriteOptions = {}): Promise<Written<Result>> {
    if (this.#closed) return Promise.reject(closedError());
    const before = this.#lanes.get(lane) ?? Promise.resolve();
    const attempt = (): Promise<Written<Result>> => this.#attempt(this.#checked(plan), options);
    const written = before.then(attempt, attempt);
    this.#occupy(lane, written);
    return written;
  }

  /**
   * Writes without making the next write wait for the outcome. Pipelined writes of all lanes are
   * planned and submitted in the order of their calls. They have that order in the log, and settle
   * in that order.
   *
   * Meant for a sole writer. A guard fails only if another client writes, too. The write then
   * rejects with the plan's error or StoreError `conflict`. It is not retried, since later writes
   * may be in the log. During an outage it retries until the database answers.
   */
  pipeline<Result>(lane: string, plan: Plan<Result>, options: PipelineOptions<Result>): Promise<Written<Result>> {
    if (this.#closed) return Promise.reject(closedError());
    const submitted = this.#submitted.then(() => this.#submit(this.#checked(plan), options));
    this.#submitted = submitted.catch(() => undefined);
    // Outcomes are queried concurrently and may arrive in any order. Each write settles after the
    // previous one.
    const before = this.#answered;
    const written = submitted.then((sent) => this.#outcomeOf(sent, options)).finally(() => before);
    this.#answered = written.then(
      () => undefined,
      () => undefined,
    );
    // Discards the result of `allSettled`. Otherwise it would nest every result since the lane was
    // last idle, and keep them in memory.
    this.#occupy(
      lane,
      Promise.allSettled([this.#lanes.get(lane), written]).then(() => undefined),
    );
    return written;
  }

  /** Returns whether a lane has a write without an outcome. */
  isBusy(lane: string): boolean {
    return this.#lanes.has(lane);
  }

  /** Resolves once all writes so far, in one lane or in all, have succeeded or failed. */
  async flush(lane?: string): Promise<void> {
    await Promise.allSettled(lane === undefined ? this.#lanes.values() : [this.#lanes.get(lane)]);
  }

  /**
   * Accepts no more writes and waits for running ones. Waits at most `limitMs` for writes in an
   * outage. Idempotent.
   */
  async close(limitMs = 0): Promise<void> {
    this.#closed = true;
    const flushed = this.flush();
    const late = delay(limitMs, undefined, { ref: false, signal: this.#stop.signal }).then(
      () => this.#stop.abort(),
      () => undefined,
    );
    await flushed;
    this.#stop.abort();
    await late;
  }

  #occupy(lane: string, until: Promise<unknown>): void {
    this.#lanes.set(lane, until);
    const forget = (): void => {
      if (this.#lanes.get(lane) === until) this.#lanes.delete(lane);
    };
    until.then(forget, forget);
  }

  /**
   * Plans and submits a write. If a receipt is lost, the next plan looks up the transaction before
   * anything else is submitted.
   */
  async #submit<Result>(
    plan: Plan<Result>,
    { onSubmitted, onOutage }: PipelineOptions<Result>,
  ): Promise<Submitted<Result>> {
    if (this.#inFlight.length >= MOST_IN_FLIGHT) await this.#inFlight.shift();
    return this.#insist(onOutage, async (attempt) => {
      const { ops, result } = await plan(attempt);
      const txId = ops.length === 0 ? undefined : (await this.#xtdb.submit(ops)).txId;
      if (txId !== undefined) this.own.sent(txId);
      onSubmitted(result);
      return { plan, result, txId };
    });
  }

  async #outcomeOf<Result>(
    { plan, result, txId }: Submitted<Result>,
    { onOutage }: PipelineOptions<Result>,
  ): Promise<Written<Result>> {
    if (txId === undefined) return { result, txId };
    const asked = this.#insist(onOutage, () => this.#xtdb.awaitOutcome(txId));
    this.#inFlight.push(asked.catch(() => undefined));
    if ((await asked) === 'committed') {
      this.own.add(txId);
      return { result, txId };
    }
    const again = await this.#insist(onOutage, () => plan(2));
    if (again.ops.length === 0) return { result: again.result, txId: undefined };
    throw new StoreError(
      'conflict',
      `another writer changed data that transaction ${txId} depends on; read again and retry`,
    );
  }

  /** Retries database work until it succeeds or fails permanently. */
  async #insist<T>(
    onOutage: ((error: XtdbError) => void) | undefined,
    work: (attempt: number) => Promise<T>,
  ): Promise<T> {
    for (let [attempt, pauseMs] = [1, FIRST_PAUSE_MS]; ; attempt++, pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        return await work(attempt);
      } catch (error) {
        if (!(error instanceof XtdbError) || !this.#retries(error, true, attempt)) throw error;
        onOutage?.(error);
        await this.#pause(pauseMs, 'the database could not be reached', error);
      }
    }
  }

  async #attempt<Result>(plan: Plan<Result>, { persistent = false, onOutage }: WriteOptions): Promise<Written<Result>> {
    let refused: readonly TxOp[] | undefined;
    let same = 0;
    let pauseMs = FIRST_PAUSE_MS;
    for (let attempt = 1; ; attempt++) {
      try {
        const { ops, result } = await plan(attempt);
        if (ops.length === 0) return { result, txId: undefined };
        const txId = await this.#commit(ops);
        if (txId !== undefined) return { result, txId };
        same = isDeepStrictEqual(ops, refused) ? same + 1 : 1;
        refused = ops;
      } catch (error) {
        if (!(error instanceof XtdbError) || !this.#retries(error, persistent, attempt)) throw error;
        onOutage?.(error);
        if (persistent) await this.#pause(pauseMs, 'the database could not be reached', error);
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
        continue;
      }
      if (same >= SAME_REFUSED) {
        throw new StoreError('conflict', `the guard of this write failed ${same} times in a row; read again and retry`);
      }
      // Random, so that two competing writers do not collide again.
      await this.#pause(Math.random() * pauseMs, 'other writers kept changing guarded data');
      pauseMs = Math.min(pauseMs * 2, LONGEST_CONFLICT_PAUSE_MS);
    }
  }

  /** Returns the id of the committed transaction. Undefined if a guard aborted it. */
  async #commit(ops: readonly TxOp[]): Promise<number | undefined> {
    try {
      const { receipt, outcome } = await this.#xtdb.execute(ops, { onReceipt: ({ txId }) => this.own.sent(txId) });
      if (outcome !== 'committed') return undefined;
      this.own.add(receipt.txId);
      return receipt.txId;
    } catch (error) {
      if (!(error instanceof XtdbError) || error.txId === undefined || this.#stop.signal.aborted) throw error;
      // The receipt arrived, but the outcome did not. Querying the outcome is cheaper than planning
      // again.
      if ((await this.#xtdb.awaitOutcome(error.txId)) !== 'committed') return undefined;
      this.own.add(error.txId);
      return error.txId;
    }
  }

  /**
   * Returns whether to try again. After a lost outcome, one more attempt lets the plan look it up.
   * A persistent write tries again throughout an outage.
   */
  #retries(error: XtdbError, persistent: boolean, attempt: number): boolean {
    if (this.#stop.signal.aborted) return false;
    if (persistent) return PASSES[error.code];
    return error.outcomeUnknown && PASSES[error.code] && attempt === 1;
  }

  async #pause(ms: number, why: string, cause?: XtdbError): Promise<void> {
    try {
      await delay(ms, undefined, { signal: this.#stop.signal });
    } catch {
      throw new StoreError('closed', `the client was closed while ${why}`, defined({ cause }));
    }
  }
}

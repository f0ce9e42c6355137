import { setTimeout as delay } from 'node:timers/promises';
import { XtdbError, type XtdbErrorCode } from '../xtdb/errors.js';
import type { TxOp } from '../xtdb/transactions.js';
import type { XtdbClient } from '../xtdb/xtdb-client.js';
import { StoreError } from './errors.js';
import { OwnTransactions } from './own-transactions.js';

/** What a plan decided: the operations of one transaction (none when there is nothing to write) and what to report when they are committed. */
export interface Planned<Result> {
  readonly ops: readonly TxOp[];
  readonly result: Result;
}

/**
 * Decides what to write from the state of the database at that moment. Called again when a guard aborted the transaction or when its outcome was
 * lost, so it must look up what is already there instead of assuming.
 */
export type Plan<Result> = (attempt: number) => Promise<Planned<Result>>;

/** A write that is committed, or that had nothing to write (`txId` undefined). */
export interface Written<Result> {
  readonly result: Result;
  readonly txId: number | undefined;
}

/** How a write meets a database that is away. */
export interface WriteOptions {
  /** Tries until the database answers instead of failing; ends only with the path. */
  readonly persistent?: boolean;
  /** Told of every failed try of a persistent write. */
  readonly onOutage?: (error: XtdbError) => void;
}

/** How often a plan is made again when others keep changing what it decided by. */
const CONFLICTS = 8;
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 1_000;

/** Whether the same request may succeed later without anybody changing it. */
const PASSES: Readonly<Record<XtdbErrorCode, boolean>> = {
  unreachable: true,
  timeout: true,
  busy: true,
  'server-error': true,
  'ingester-failed': true,
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
 * The only place of a client that submits transactions (decision H5). Writes of one lane go one after another, in the order they were asked for;
 * lanes do not wait for each other. Each write is one transaction with one outcome, learned by asking.
 */
export class WritePath {
  /** The transactions that were committed through this path. */
  readonly own = new OwnTransactions();
  readonly #xtdb: XtdbClient;
  readonly #lanes = new Map<string, Promise<unknown>>();
  readonly #stop = new AbortController();
  #closed = false;

  constructor(xtdb: XtdbClient) {
    this.#xtdb = xtdb;
  }

  /**
   * Writes after everything asked for before in this lane. Rejects with StoreError `conflict` when guards keep failing, with what the plan throws, or,
   * unless it is persistent, with the XtdbError that kept the outcome from being learned.
   */
  write<Result>(lane: string, plan: Plan<Result>, options: WriteOptions = {}): Promise<Written<Result>> {
    if (this.#closed) return Promise.reject(new StoreError('closed', 'the client is closed; nothing more can be written through it'));
    const before = this.#lanes.get(lane) ?? Promise.resolve();
    const attempt = (): Promise<Written<Result>> => this.#attempt(plan, options);
    const written = before.then(attempt, attempt);
    this.#lanes.set(lane, written);
    const forget = (): void => {
      if (this.#lanes.get(lane) === written) this.#lanes.delete(lane);
    };
    written.then(forget, forget);
    return written;
  }

  /** Resolves when everything asked for so far, in one lane or in all, has its outcome, good or bad. */
  async flush(lane?: string): Promise<void> {
    await Promise.allSettled(lane === undefined ? this.#lanes.values() : [this.#lanes.get(lane)]);
  }

  /** Takes no more writes, waits for those under way, at most `limitMs` for those that meet an outage. Idempotent. */
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

  async #attempt<Result>(plan: Plan<Result>, { persistent = false, onOutage }: WriteOptions): Promise<Written<Result>> {
    let conflicts = 0;
    let pauseMs = FIRST_PAUSE_MS;
    for (let attempt = 1; ; attempt++) {
      try {
        const { ops, result } = await plan(attempt);
        if (ops.length === 0) return { result, txId: undefined };
        const txId = await this.#commit(ops);
        if (txId !== undefined) return { result, txId };
        conflicts += 1;
        pauseMs = FIRST_PAUSE_MS;
      } catch (error) {
        if (!(error instanceof XtdbError) || !this.#retries(error, persistent, attempt)) throw error;
        onOutage?.(error);
        if (persistent) await this.#pause(pauseMs, error);
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      }
      if (conflicts >= CONFLICTS) {
        throw new StoreError(
          'conflict',
          `another writer changed what this write was guarded by ${CONFLICTS} times in a row; read again and retry`,
        );
      }
    }
  }

  /** The transaction's id when it is committed, undefined when a guard aborted it. */
  async #commit(ops: readonly TxOp[]): Promise<number | undefined> {
    try {
      const { receipt, outcome } = await this.#xtdb.execute(ops);
      if (outcome !== 'committed') return undefined;
      this.own.add(receipt.txId);
      return receipt.txId;
    } catch (error) {
      if (!(error instanceof XtdbError) || error.txId === undefined || this.#stop.signal.aborted) throw error;
      // The receipt came, its outcome did not: asking again is cheaper than planning again.
      if ((await this.#xtdb.awaitOutcome(error.txId)) !== 'committed') return undefined;
      this.own.add(error.txId);
      return error.txId;
    }
  }

  /** A lost outcome is looked up by the next plan, once; a persistent write goes on through an outage. */
  #retries(error: XtdbError, persistent: boolean, attempt: number): boolean {
    if (this.#stop.signal.aborted) return false;
    if (persistent) return PASSES[error.code];
    return error.outcomeUnknown && PASSES[error.code] && attempt === 1;
  }

  async #pause(ms: number, cause: XtdbError): Promise<void> {
    try {
      await delay(ms, undefined, { signal: this.#stop.signal });
    } catch {
      throw new StoreError('closed', 'the client was closed while the database could not be reached', { cause });
    }
  }
}

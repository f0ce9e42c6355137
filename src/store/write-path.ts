import { XtdbError } from '../xtdb/errors.js';
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

/** How often a plan is made again when others keep changing what it decided by. */
const ATTEMPTS = 8;

/**
 * The only place of a client that submits transactions (decision H5). Writes of one lane go one after another, in the order they were asked for;
 * lanes do not wait for each other. Each write is one transaction with one outcome, learned by asking.
 *
 * This is where a local journal goes under: a write is given as a plan that can be made again, never as operations that were decided once.
 */
export class WritePath {
  readonly #xtdb: XtdbClient;
  /** The transactions that were committed through this path. */
  readonly own = new OwnTransactions();
  readonly #lanes = new Map<string, Promise<unknown>>();
  #closed = false;

  constructor(xtdb: XtdbClient) {
    this.#xtdb = xtdb;
  }

  /** How many lanes have writes under way. */
  get busy(): number {
    return this.#lanes.size;
  }

  /**
   * Writes after everything asked for before in this lane. Rejects with StoreError `conflict` when guards keep failing, or with the XtdbError that
   * kept the outcome from being learned.
   */
  write<Result>(lane: string, plan: Plan<Result>): Promise<Written<Result>> {
    if (this.#closed) return Promise.reject(new StoreError('closed', 'the client is closed; nothing more can be written through it'));
    const before = this.#lanes.get(lane) ?? Promise.resolve();
    const written = before.then(
      () => this.#attempt(plan),
      () => this.#attempt(plan),
    );
    this.#lanes.set(lane, written);
    const forget = (): void => {
      if (this.#lanes.get(lane) === written) this.#lanes.delete(lane);
    };
    written.then(forget, forget);
    return written;
  }

  /** Resolves when everything asked for so far has its outcome, good or bad. */
  async flush(): Promise<void> {
    await Promise.allSettled(this.#lanes.values());
  }

  /** Takes no more writes and waits for those under way. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.flush();
  }

  async #attempt<Result>(plan: Plan<Result>): Promise<Written<Result>> {
    let lost: XtdbError | undefined;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const { ops, result } = await plan(attempt);
      if (ops.length === 0) return { result, txId: undefined };
      try {
        const { receipt, outcome } = await this.#xtdb.execute(ops);
        if (outcome === 'committed') {
          this.own.add(receipt.txId);
          return { result, txId: receipt.txId };
        }
      } catch (error) {
        // The transaction may or may not be in the log: the next plan looks its documents up instead of guessing.
        if (!(error instanceof XtdbError) || !error.outcomeUnknown || lost !== undefined) throw error;
        lost = error;
      }
    }
    throw new StoreError(
      'conflict',
      `another writer changed what this write was guarded by ${ATTEMPTS} times in a row; read again and retry`,
      {
        cause: lost,
      },
    );
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import { counted } from '../values/counted.js';
import { defined } from '../values/defined.js';
import { XtdbError, type XtdbErrorCode } from '../xtdb/errors.js';
import type { TxOp } from '../xtdb/transactions.js';
import type { XtdbClient } from '../xtdb/xtdb-client.js';
import { StoreError } from './errors.js';

/** The transactions that a client made itself, which show whether another client wrote in between. Forgets the oldest; then the answer is no. */
export class OwnTransactions {
  readonly #ids = new LRUCache<number, true>(counted(50_000));
  readonly #sent = new LRUCache<number, true>(counted(50_000));

  add(txId: number): void {
    this.#ids.set(txId, true);
  }

  /** Notes a transaction that is in the log; what became of it is not known yet. */
  sent(txId: number): void {
    this.#sent.set(txId, true);
  }

  /** As `cover`, with those whose outcome is not known yet, and those that came to nothing. */
  coverSent(from: number, to: number): boolean {
    return every(from, to, (id) => this.#ids.has(id) || this.#sent.has(id));
  }

  /** Whether every transaction after `from` up to `to` is one of ours. Ids with gaps, as other logs than XTDB's own have, answer no. */
  cover(from: number, to: number): boolean {
    return every(from, to, (id) => this.#ids.has(id));
  }
}

/** Whether something holds of every number after `from` up to `to`. */
function every(from: number, to: number, holds: (id: number) => boolean): boolean {
  for (let id = from + 1; id <= to; id++) if (!holds(id)) return false;
  return true;
}

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

/** What a write does while the database cannot be reached. */
export interface WriteOptions {
  /** Tries until the database answers instead of failing; ends only with the path. */
  readonly persistent?: boolean;
  /** Called with the error of every failed attempt of a persistent write. */
  readonly onOutage?: (error: XtdbError) => void;
}

/** Callbacks of a pipelined write. */
export interface PipelineOptions<Result> {
  /** Called once the transaction is in the log, before the next write is planned, so that the plan can decide by it. */
  readonly onSubmitted: (result: Result) => void;
  /** Called with the error of every failed attempt. */
  readonly onOutage?: (error: XtdbError) => void;
}

interface Submitted<Result> extends Written<Result> {
  readonly plan: Plan<Result>;
}

/** How often the same operations are refused before they are given up: whoever keeps changing what a plan decided by makes it decide something else. */
const SAME_REFUSED = 8;
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 1_000;
const LONGEST_CONFLICT_PAUSE_MS = 250;
/** Transactions of the pipeline whose outcome is not known yet. */
const MOST_IN_FLIGHT = 16;

/** Whether the same request may succeed later without anybody changing it. */
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

/** Whether an error says that the database will not take a write as it is, rather than that its client was closed or met an outage. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof XtdbError) return !PASSES[error.code] && error.code !== 'closed' && error.code !== 'aborted';
  return !(error instanceof StoreError) || error.code !== 'closed';
}

const closedError = (): StoreError => new StoreError('closed', 'the client is closed; nothing more can be written through it');

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
  /** The end of the pipeline: when everything that was put into it is in the log. */
  #submitted: Promise<unknown> = Promise.resolve();
  readonly #inFlight: Promise<unknown>[] = [];
  /** When everything that was put into the pipeline has its outcome. */
  #answered: Promise<void> = Promise.resolve();

  constructor(xtdb: XtdbClient) {
    this.#xtdb = xtdb;
  }

  /**
   * Writes after everything asked for before in this lane. Refused by a guard, it is planned again for as long as the plan changes with what others write;
   * then it rejects with StoreError `conflict`. Rejects with what the plan throws, too, or, unless it is persistent, with the XtdbError that kept the
   * outcome from being learned.
   */
  write<Result>(lane: string, plan: Plan<Result>, options: WriteOptions = {}): Promise<Written<Result>> {
    if (this.#closed) return Promise.reject(closedError());
    const before = this.#lanes.get(lane) ?? Promise.resolve();
    const attempt = (): Promise<Written<Result>> => this.#attempt(plan, options);
    const written = before.then(attempt, attempt);
    this.#occupy(lane, written);
    return written;
  }

  /**
   * Writes without making the next write wait for the outcome: everything in the pipeline, of whichever lane, is planned and submitted in the order it was
   * asked for, so it stands in the log in that order, and resolves or rejects in that order. For a sole writer, whose guards fail only where it is none: then the write rejects with what its plan
   * throws, or StoreError `conflict`, and is not tried again, since later ones may stand in the log. Tries until the database answers.
   */
  pipeline<Result>(lane: string, plan: Plan<Result>, options: PipelineOptions<Result>): Promise<Written<Result>> {
    if (this.#closed) return Promise.reject(closedError());
    const submitted = this.#submitted.then(() => this.#submit(plan, options));
    this.#submitted = submitted.catch(() => undefined);
    // Outcomes are asked for side by side, and one answer may overtake another on its way.
    const before = this.#answered;
    const written = submitted.then((sent) => this.#outcomeOf(sent, options)).finally(() => before);
    this.#answered = written.then(
      () => undefined,
      () => undefined,
    );
    // Only when it ends counts: what `allSettled` answers would hold every result since the lane was last at rest, each inside the one after it.
    this.#occupy(
      lane,
      Promise.allSettled([this.#lanes.get(lane), written]).then(() => undefined),
    );
    return written;
  }

  /** Whether something of a lane has no outcome yet. */
  isBusy(lane: string): boolean {
    return this.#lanes.has(lane);
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

  #occupy(lane: string, until: Promise<unknown>): void {
    this.#lanes.set(lane, until);
    const forget = (): void => {
      if (this.#lanes.get(lane) === until) this.#lanes.delete(lane);
    };
    until.then(forget, forget);
  }

  /** Plans and submits; a receipt that was lost is looked up by the next plan, before anything else is submitted. */
  async #submit<Result>(plan: Plan<Result>, { onSubmitted, onOutage }: PipelineOptions<Result>): Promise<Submitted<Result>> {
    if (this.#inFlight.length >= MOST_IN_FLIGHT) await this.#inFlight.shift();
    return this.#insist(onOutage, async (attempt) => {
      const { ops, result } = await plan(attempt);
      const txId = ops.length === 0 ? undefined : (await this.#xtdb.submit(ops)).txId;
      if (txId !== undefined) this.own.sent(txId);
      onSubmitted(result);
      return { plan, result, txId };
    });
  }

  async #outcomeOf<Result>({ plan, result, txId }: Submitted<Result>, { onOutage }: PipelineOptions<Result>): Promise<Written<Result>> {
    if (txId === undefined) return { result, txId };
    const asked = this.#insist(onOutage, () => this.#xtdb.awaitOutcome(txId));
    this.#inFlight.push(asked.catch(() => undefined));
    if ((await asked) === 'committed') {
      this.own.add(txId);
      return { result, txId };
    }
    const again = await this.#insist(onOutage, () => plan(2));
    if (again.ops.length === 0) return { result: again.result, txId: undefined };
    throw new StoreError('conflict', `another writer changed what transaction ${txId} was guarded by; read again and retry`);
  }

  /** Does what needs the database until it answers, or something is wrong that does not pass. */
  async #insist<T>(onOutage: ((error: XtdbError) => void) | undefined, work: (attempt: number) => Promise<T>): Promise<T> {
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
        throw new StoreError('conflict', `what this write is guarded by did not hold ${same} times in a row; read again and retry`);
      }
      // Random, so that two writers who met do not meet again.
      await this.#pause(Math.random() * pauseMs, 'others kept changing what it was guarded by');
      pauseMs = Math.min(pauseMs * 2, LONGEST_CONFLICT_PAUSE_MS);
    }
  }

  /** The transaction's id when it is committed, undefined when a guard aborted it. */
  async #commit(ops: readonly TxOp[]): Promise<number | undefined> {
    try {
      const { receipt, outcome } = await this.#xtdb.execute(ops, { onReceipt: ({ txId }) => this.own.sent(txId) });
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

  async #pause(ms: number, why: string, cause?: XtdbError): Promise<void> {
    try {
      await delay(ms, undefined, { signal: this.#stop.signal });
    } catch {
      throw new StoreError('closed', `the client was closed while ${why}`, defined({ cause }));
    }
  }
}

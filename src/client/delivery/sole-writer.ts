import { isDeepStrictEqual } from 'node:util';
import type { ObjectStore } from '../../store/object-store.js';
import { isRefusal, type Plan, type Planned, type WriteOptions, type Written } from '../../store/write-path.js';
import { standsAlone } from './plan-assembly.js';
import { mayShare, planTogether } from './plan-together.js';
import { type SessionWrite, unitsOf, type WriteResult } from './session-write.js';
import { type Delivered, OwnFiles, type PlannedWrite, type Writer } from './writers.js';

/** The only lane of a sole writer. */
const ONLY_LANE = '.all';
/** Maximum writes per transaction. */
const MOST_TOGETHER = 64;
/** Maximum text per transaction, in UTF-16 units. It is far below the limit of a request body. */
const MOST_UNITS = 2 * 1_048_576;
/**
 * Maximum transactions without an outcome. Further writes queue up and share the next transaction.
 */
const MOST_UNANSWERED = 2;

/** A write in the queue. */
interface Waiting {
  readonly planned: PlannedWrite;
  readonly options: WriteOptions;
  readonly resolve: (delivered: Delivered) => void;
  readonly reject: (error: unknown) => void;
  /** Whether the write needs a separate transaction, because a shared one was refused. */
  isAlone: boolean;
}

/** Returns whether a write may share a transaction: a step inside a turn, or an assembly record. */
function joins(write: SessionWrite): boolean {
  if (write.assembly === undefined) return mayShare(write);
  return !standsAlone(write) && write.shown === undefined && write.lease != null;
}

/** Returns the time of a write's step, or a time before all steps if it has none. */
const stepTime = ({ step, at }: SessionWrite): number => (step === undefined ? Number.NEGATIVE_INFINITY : at);

/** Returns a plan that waits until the write is ready before each attempt. */
function whenReady({ ready, plan }: Pick<PlannedWrite, 'ready' | 'plan'>): Plan<WriteResult> {
  return async (attempt) => {
    await ready();
    return plan(attempt);
  };
}

/**
 * The writer of a client that is the only writer of its sessions and files, as in a replay. It asks
 * the database for each file once. All sessions share one lane, so that the database gets the
 * writes in the process's order. If pipelined, no write waits for the previous one, and consecutive
 * steps and records of a session share transactions while the database is busy.
 */
export class SoleWriter implements Writer {
  readonly acknowledgesAtOnce: boolean;
  readonly ownFiles = new OwnFiles();
  readonly #store: ObjectStore;
  readonly #queue: Waiting[] = [];
  readonly #unanswered = new Set<Promise<void>>();
  #sending: Promise<void> | undefined;

  /** `pipelined` is for a client without a journal, whose writes do not outlive the process. */
  constructor(store: ObjectStore, options: { readonly pipelined: boolean }) {
    this.#store = store;
    this.acknowledgesAtOnce = options.pipelined;
  }

  laneOf(): string {
    return ONLY_LANE;
  }

  write(planned: PlannedWrite, options: WriteOptions): Promise<Delivered> {
    if (!this.acknowledgesAtOnce || options.persistent !== true) return this.#alone(planned, options);
    return new Promise((resolve, reject) => {
      this.#queue.push({ planned, options, resolve, reject, isAlone: false });
      this.#sending ??= this.#send().finally(() => {
        this.#sending = undefined;
      });
    });
  }

  /** Writes in a separate transaction, after the queued writes. */
  async #alone(planned: PlannedWrite, options: WriteOptions): Promise<Delivered> {
    while (this.#sending !== undefined) await this.#sending;
    const { txId, result } = await this.#store.writes.write(ONLY_LANE, whenReady(planned), options);
    this.ownFiles.learn(result);
    return { txId, result, together: [{ write: planned.write, result }] };
  }

  async #send(): Promise<void> {
    while (this.#queue.length > 0) {
      while (this.#unanswered.size >= MOST_UNANSWERED) await Promise.race(this.#unanswered);
      await this.#submit(this.#nextGroup());
    }
  }

  /** Takes the first write from the queue, and those after it that may share its transaction. */
  #nextGroup(): readonly [Waiting, ...(readonly Waiting[])] {
    const first = this.#queue.shift() as Waiting;
    const { session, lease } = first.planned.write;
    const group: [Waiting, ...Waiting[]] = [first];
    if (first.isAlone || !joins(first.planned.write)) return group;
    let units = unitsOf(first.planned.write);
    let at = stepTime(first.planned.write);
    for (let next = this.#queue[0]; next !== undefined && group.length < MOST_TOGETHER; next = this.#queue[0]) {
      const { write } = next.planned;
      units += unitsOf(write);
      const follows = write.session === session && isDeepStrictEqual(write.lease, lease);
      // Steps of one transaction need increasing times, so that each has its own place in history.
      const isLater = write.step === undefined || write.at > at;
      if (next.isAlone || !joins(write) || !follows || !isLater || units > MOST_UNITS) break;
      at = Math.max(at, stepTime(write));
      group.push(next);
      this.#queue.shift();
    }
    return group;
  }

  /** Resolves once the transaction is in the log or failed. Its outcome settles the writes. */
  #submit(group: readonly [Waiting, ...(readonly Waiting[])]): Promise<void> {
    const [{ options }] = group;
    return new Promise((resolve) => {
      let sent: readonly Waiting[] = group;
      let isSubmitted = false;
      const onSubmitted = (results: readonly WriteResult[]): void => {
        isSubmitted = true;
        sent = group.slice(0, results.length);
        this.#queue.unshift(...group.slice(results.length));
        for (const result of results) this.ownFiles.learn(result);
        resolve();
      };
      const { onOutage } = options;
      const written = this.#store.writes.pipeline(
        ONLY_LANE,
        group.length === 1 ? this.#planOf(group[0]) : this.#planOfAll(group),
        onOutage === undefined ? { onSubmitted } : { onSubmitted, onOutage },
      );
      const answered = written
        .then(
          (done) => settle(sent, done),
          (error: unknown) => this.#failed(sent, error, isSubmitted),
        )
        .finally(() => {
          this.#unanswered.delete(answered);
          resolve();
        });
      this.#unanswered.add(answered);
    });
  }

  /**
   * Retries the writes of a refused transaction that is not in the log, each in its own
   * transaction.
   */
  #failed(sent: readonly Waiting[], error: unknown, isSubmitted: boolean): void {
    if (isSubmitted || sent.length === 1 || !isRefusal(error)) for (const { reject } of sent) reject(error);
    else {
      for (const one of sent) one.isAlone = true;
      this.#queue.unshift(...sent);
    }
  }

  #planOf({ planned }: Waiting): Plan<readonly WriteResult[]> {
    const plan = whenReady(planned);
    return async (attempt) => {
      const { ops, result } = await plan(attempt);
      return { ops, result: [result] };
    };
  }

  /** The transaction contains all of the writes or none, so a retry looks up only the first. */
  #planOfAll(group: readonly [Waiting, ...(readonly Waiting[])]): Plan<readonly WriteResult[]> {
    const [{ planned: first }] = group;
    let results: readonly WriteResult[] = [];
    return async (attempt): Promise<Planned<readonly WriteResult[]>> => {
      await first.ready();
      if (attempt > 1 && (await first.plan(attempt)).ops.length === 0) return { ops: [], result: results };
      const writes = group.map(({ planned }) => planned.write);
      const planned = await planTogether(this.#store, writes, { own: this.ownFiles });
      results = planned.results;
      return { ops: planned.ops, result: results };
    };
  }
}

/** Settles the writes of a transaction in their order. */
function settle(sent: readonly Waiting[], { txId, result: results }: Written<readonly WriteResult[]>): void {
  const together = sent.map(({ planned: { write } }, i) => ({ write, result: results[i] as WriteResult }));
  for (const [i, { resolve }] of sent.entries())
    resolve({ txId, result: results[i] as WriteResult, together: i === 0 ? together : [] });
}

import { isDeepStrictEqual } from 'node:util';
import type { ObjectId } from '../../objects/ids.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { Planned, WriteOptions, Written } from '../../store/write-path.js';
import { type FindAuthor, MOST_DISCOVERED } from '../decide-file.js';
import { fileObjectId } from '../file-access.js';
import { planTogether } from './plan-together.js';
import { unitsOf, type WriteResult } from './session-write.js';
import type { Delivered, PlannedWrite, Writer } from './writers.js';

/**
 * Maximum writes per transaction. A transaction of this size blocks the indexer for some tens of
 * milliseconds.
 */
const MOST_TOGETHER = 32;
/** Maximum text per transaction, in UTF-16 units. It is far below the limit of a request body. */
const MOST_UNITS = 2 * 1_048_576;
/**
 * Maximum files that the writes of one transaction read or mention. A single listing may discover
 * this many.
 */
const MOST_FILES = MOST_DISCOVERED;

/** A write in delivery. */
interface Waiting {
  readonly planned: PlannedWrite;
  /** Earlier unfinished writes that share a file with this one. */
  before: readonly Waiting[];
  /** Whether the write has finished, with success or failure. */
  hasEnded: boolean;
  /** Resolves when the write has finished. */
  ended: Promise<void>;
  /**
   * The write whose transaction was planned to include this one. If that transaction failed or its
   * outcome is unknown, this write is looked up before it is written.
   */
  carrier?: Waiting;
  /** The carrier's transaction that includes this write, and its result. */
  carried?: Written<WriteResult>;
}

/** A write and the result planned for it in a transaction. */
interface Decided {
  readonly waiting: Waiting;
  readonly result: WriteResult;
}

/**
 * The writer of a client that shares the database with others. Writes that share a file run one
 * after another, even in different lanes (decision C11). Each is planned against the state after
 * the earlier one. So a change that a session made and a tracker saw becomes one version (decision
 * C12). Likewise, a listing of new files does not fail its guard whenever another session reads one
 * of them. Steps of a session that queue up share a transaction (decision 0004). If that fails,
 * each gets its own.
 */
export class SharedWriter implements Writer {
  readonly acknowledgesAtOnce = false;
  readonly ownFiles = undefined;
  readonly findAuthor: FindAuthor | undefined;
  readonly #store: ObjectStore;
  /** The last unfinished write of each file. */
  readonly #last = new Map<ObjectId, Waiting>();
  /** Queued writes by lane, in order. */
  readonly #queues = new Map<string, Waiting[]>();

  constructor(store: ObjectStore, findAuthor?: FindAuthor) {
    this.#store = store;
    this.findAuthor = findAuthor;
  }

  laneOf(name: string): string {
    return name;
  }

  write(planned: PlannedWrite, options: WriteOptions): Promise<Delivered> {
    const { write, lane } = planned;
    const ids = new Set(write.files.map(({ source }) => fileObjectId(source)));
    const before = new Set([...ids].flatMap((id) => this.#last.get(id) ?? []));
    const waiting: Waiting = { planned, before: [...before], hasEnded: false, ended: Promise.resolve() };
    const queue = this.#queues.get(lane) ?? [];
    this.#queues.set(lane, queue);
    queue.push(waiting);
    const delivered = this.#store.writes
      .write(lane, (attempt) => this.#plan(waiting, attempt), options)
      .then((written) => outcomeOf(waiting, written));
    const end = (): void => {
      waiting.hasEnded = true;
      // Release the earlier writes, so that a waiting caller does not keep them in memory.
      waiting.before = [];
      for (const id of ids) if (this.#last.get(id) === waiting) this.#last.delete(id);
    };
    waiting.ended = delivered.then(end, end);
    for (const id of ids) this.#last.set(id, waiting);
    return delivered;
  }

  async #plan(waiting: Waiting, attempt: number): Promise<Planned<readonly Decided[]>> {
    this.#leave(waiting);
    const { planned, carrier, before } = waiting;
    await carrier?.ended;
    if (waiting.carried !== undefined) return { ops: [], result: [] };
    await Promise.all(before.map(({ ended }) => ended));
    await planned.ready();
    const group = attempt === 1 && carrier === undefined ? this.#groupOf(waiting) : [waiting];
    const isThere = group.length > 1 && (await this.#isThere(planned));
    if (group.length > 1 && !isThere) return this.#planTogether(waiting, group);
    const { ops, result } = await planned.plan(carrier === undefined && !isThere ? attempt : attempt + 1);
    return { ops, result: [{ waiting, result }] };
  }

  /**
   * Returns whether an earlier process has applied a step. If that process has not, it has not
   * applied later steps either.
   */
  async #isThere({ write: { step }, seen = false }: PlannedWrite): Promise<boolean> {
    return (
      seen && step !== undefined && (await (await this.#store.latest()).step(step.session, step.seq)) !== undefined
    );
  }

  async #planTogether(first: Waiting, group: readonly Waiting[]): Promise<Planned<readonly Decided[]>> {
    const { ops, results } = await planTogether(
      this.#store,
      group.map(({ planned }) => planned.write),
      { findAuthor: this.findAuthor },
    );
    const decided = group
      .slice(0, results.length)
      .map((waiting, i) => ({ waiting, result: results[i] as WriteResult }));
    for (const { waiting, result } of decided) {
      waiting.planned.shares?.(result);
      if (waiting !== first) waiting.carrier = first;
    }
    return { ops, result: decided };
  }

  /**
   * Returns a write and the queued writes that may share its transaction. They have one lease and
   * increasing acknowledgement times, and none waits for a write outside the group.
   */
  #groupOf(first: Waiting): readonly Waiting[] {
    const group = [first];
    let [units, files] = [unitsOf(first.planned.write), first.planned.write.files.length];
    for (const next of this.#queues.get(first.planned.lane) ?? []) {
      const { write, shares } = next.planned;
      units += unitsOf(write);
      files += write.files.length;
      const fits = group.length < MOST_TOGETHER && units <= MOST_UNITS && files <= MOST_FILES;
      const follows =
        isDeepStrictEqual(write.lease, first.planned.write.lease) && write.at > (group.at(-1)?.planned.write.at ?? 0);
      const isFree = next.before.every((one) => one.hasEnded || group.includes(one));
      if (first.planned.shares === undefined || shares === undefined || !fits || !follows || !isFree) break;
      group.push(next);
    }
    return group;
  }

  /** Removes the first write of a queue. */
  #leave(waiting: Waiting): void {
    const { lane } = waiting.planned;
    const queue = this.#queues.get(lane);
    if (queue?.[0] !== waiting) return;
    queue.shift();
    if (queue.length === 0) this.#queues.delete(lane);
  }
}

/** Returns the result of a write, and sets the results of the other writes of its transaction. */
function outcomeOf(waiting: Waiting, { result: decided, txId }: Written<readonly Decided[]>): Delivered {
  if (waiting.carried !== undefined) return { ...waiting.carried, together: [] };
  const [own, ...others] = decided;
  if (own === undefined) throw new Error('BUG: a transaction without a result for its first write');
  for (const { waiting: other, result } of others) other.carried = { result, txId };
  return {
    result: own.result,
    txId,
    together: decided.map(({ waiting: { planned }, result }) => ({ write: planned.write, result })),
  };
}

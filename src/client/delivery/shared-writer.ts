import { isDeepStrictEqual } from 'node:util';
import { MOST_DISCOVERED } from '../../indexing/decide-file.js';
import type { ObjectId } from '../../objects/ids.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { Planned, WriteOptions, Written } from '../../store/write-path.js';
import { fileObjectId } from '../file-access.js';
import { planTogether } from './plan-write.js';
import type { SessionWrite, WriteResult } from './session-write.js';
import type { Delivered, PlannedWrite, Writer } from './writers.js';

/** The most writes of one transaction: it holds the indexer up for some tens of milliseconds. */
const MOST_TOGETHER = 32;
/** The most text of the writes of one transaction, in UTF-16 units; far below the limit of a request's body. */
const MOST_UNITS = 2 * 1_048_576;
/** The most files that the writes of one transaction read or mention: as many as one listing discovers. */
const MOST_FILES = MOST_DISCOVERED;

/** A write on its way. */
interface Waiting {
  readonly planned: PlannedWrite;
  /** The writes without an outcome that hold one of its files and were asked for before it. */
  before: readonly Waiting[];
  /** Whether it has its outcome, good or bad. */
  hasEnded: boolean;
  /** Resolves when it has. */
  ended: Promise<void>;
  /** The write whose transaction was to hold this one too; where that came to nothing, or nobody knows, this one is looked up before it is written. */
  carrier?: Waiting;
  /** The transaction of the carrier that holds it, and what came of it. */
  carried?: Written<WriteResult>;
}

/** A write with what its transaction decided about it. */
interface Decided {
  readonly waiting: Waiting;
  readonly result: WriteResult;
}

function textsOf({ step, call, files }: SessionWrite): readonly (string | null | undefined)[] {
  const read = files.map((file) => (file.kind === 'read' && 'content' in file.reading ? file.reading.content : undefined));
  return [step?.message?.text, call?.made.content, call?.wholeText?.text, call?.argsText?.text, ...read];
}

const unitsOf = (write: SessionWrite): number => textsOf(write).reduce((sum, text) => sum + (text?.length ?? 0), 0);

/**
 * The writer of a client that shares the database with others. Writes that hold the same file, read or mentioned, go one after another, in whichever lanes
 * they are (decision C11): each decides against what the one before it left, so that a change that a session made and a tracker saw is one version
 * (decision C12), and a listing of new files is not refused for each of them that another session reads meanwhile. Steps of a session that wait while
 * the database takes those before them go there together (decision 0004); where that fails, each goes by itself.
 */
export class SharedWriter implements Writer {
  readonly acknowledgesAtOnce = false;
  readonly ownFiles = undefined;
  readonly #store: ObjectStore;
  /** The last write without an outcome that holds a file. */
  readonly #last = new Map<ObjectId, Waiting>();
  /** By lane, in their order: the writes whose turn has not come. */
  readonly #queues = new Map<string, Waiting[]>();

  constructor(store: ObjectStore) {
    this.#store = store;
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
      // What it waited for is not held for as long as somebody waits for it.
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

  /** Whether an earlier process has applied a step; where it has not, it has applied none of those after it. */
  async #isThere({ write: { step }, seen = false }: PlannedWrite): Promise<boolean> {
    return seen && step !== undefined && (await (await this.#store.latest()).step(step.session, step.seq)) !== undefined;
  }

  async #planTogether(first: Waiting, group: readonly Waiting[]): Promise<Planned<readonly Decided[]>> {
    const { ops, results } = await planTogether(
      this.#store,
      group.map(({ planned }) => planned.write),
    );
    const decided = group.slice(0, results.length).map((waiting, i) => ({ waiting, result: results[i] as WriteResult }));
    for (const { waiting, result } of decided) {
      waiting.planned.shares?.(result);
      if (waiting !== first) waiting.carrier = first;
    }
    return { ops, result: decided };
  }

  /** A write and those behind it that may go with it: one lease, each acknowledged later than the one before, and nobody else's write that one of them waits for. */
  #groupOf(first: Waiting): readonly Waiting[] {
    const group = [first];
    let [units, files] = [unitsOf(first.planned.write), first.planned.write.files.length];
    for (const next of this.#queues.get(first.planned.lane) ?? []) {
      const { write, shares } = next.planned;
      units += unitsOf(write);
      files += write.files.length;
      const fits = group.length < MOST_TOGETHER && units <= MOST_UNITS && files <= MOST_FILES;
      const follows = isDeepStrictEqual(write.lease, first.planned.write.lease) && write.at > (group.at(-1)?.planned.write.at ?? 0);
      const isFree = next.before.every((one) => one.hasEnded || group.includes(one));
      if (first.planned.shares === undefined || shares === undefined || !fits || !follows || !isFree) break;
      group.push(next);
    }
    return group;
  }

  /** Takes a write out of its queue, whose first one it is. */
  #leave(waiting: Waiting): void {
    const { lane } = waiting.planned;
    const queue = this.#queues.get(lane);
    if (queue?.[0] !== waiting) return;
    queue.shift();
    if (queue.length === 0) this.#queues.delete(lane);
  }
}

/** What became of a write; tells those that its transaction held too. */
function outcomeOf(waiting: Waiting, { result: decided, txId }: Written<readonly Decided[]>): Delivered {
  if (waiting.carried !== undefined) return { ...waiting.carried, together: [] };
  const [own, ...others] = decided;
  if (own === undefined) throw new Error('BUG: a write without a decision');
  for (const { waiting: other, result } of others) other.carried = { result, txId };
  return { result: own.result, txId, together: decided.map(({ waiting: { planned }, result }) => ({ write: planned.write, result })) };
}

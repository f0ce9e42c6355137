import type { AssemblyProof } from '../../objects/assembly-proof.js';
import {
  callSuffix,
  chatObjectId,
  type ObjectId,
  objectId,
  type SessionId,
  sessionObjectId,
} from '../../objects/ids.js';
import type { SetChanges } from '../../objects/sets.js';
import { endsWithin } from '../../process/within-limit.js';
import { SessionError } from '../../session/errors.js';
import type { ObjectStore } from '../../store/object-store.js';
import { isRefusal, type Planned, type WriteOptions } from '../../store/write-path.js';
import { defined } from '../../values/defined.js';
import { errorOf } from '../../values/thrown.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { XtdbError } from '../../xtdb/errors.js';
import { NotKeptError } from '../delivery/not-kept.js';
import type { Held } from '../delivery/outbox.js';
import { planAssembly } from '../delivery/plan-assembly.js';
import { planWrite } from '../delivery/plan-write.js';
import { forkHeads } from '../delivery/session-heads.js';
import type { SessionWrite, WriteResult } from '../delivery/session-write.js';
import { earlierFork, freeFork, type RescuePlace, termOf } from './rescue-fork.js';

/** A fork that receives the writes of a lost session. */
interface Rescue extends RescuePlace {
  readonly lease: StoredDocument;
  /** Maps each call id to its id in the fork. */
  readonly renames: Map<ObjectId, ObjectId>;
  /** The next fork, if another client has opened this one. */
  onward?: Rescue;
}

/**
 * Called with a write moved to a fork, its result and its transaction. The transaction is undefined
 * if the fork had the write already.
 */
type RescuedListener = (write: SessionWrite, result: WriteResult, txId: number | undefined) => void;

type Rename = (id: ObjectId) => ObjectId;

function renamed(changes: SetChanges, rename: Rename): SetChanges {
  return Object.fromEntries(
    Object.entries(changes).map(([what, ids]) => [what, (ids as readonly ObjectId[]).map(rename)]),
  );
}

/**
 * Turns a write of a lost session into a step of its fork. Content and order stay. The call's
 * object gets an id with the fork's suffix, because the other writer may have used the old id.
 */
function rescuedWrite({ step, call, files, at }: SessionWrite, { fork, lease, renames }: Rescue): SessionWrite {
  const rename: Rename = (id) => renames.get(id) ?? id;
  if (call !== undefined) renames.set(call.id, objectId(`${call.id}${callSuffix(fork)}`));
  const moved: SessionWrite = { session: fork, lease, files, heads: [], at };
  if (step === undefined) return moved;
  const movedStep = {
    ...step,
    session: fork,
    changes: renamed(step.changes, rename),
    ...(step.call === undefined ? {} : { call: { ...step.call, id: rename(step.call.id) } }),
    ...defined({ fresh: step.fresh?.map(rename) }),
  };
  if (call === undefined) return { ...moved, step: movedStep };
  const fileRefs = call.made.fileRefs?.map(rename);
  return {
    ...moved,
    step: movedStep,
    call: call.with({ id: rename(call.id), chatRef: chatObjectId(fork), ...defined({ fileRefs }) }),
  };
}

/** Adds the renamed calls of a fork. Their ids end with the fork's suffix. */
function learnCalls({ fork, renames }: Rescue, ids: Iterable<ObjectId>): void {
  const suffix = callSuffix(fork);
  for (const id of ids) if (id.endsWith(suffix)) renames.set(objectId(id.slice(0, -suffix.length)), id);
}

/** Returns the fork that stores a rescued step. */
const placeOf = (rescue: Rescue, seq: number): Rescue =>
  rescue.onward === undefined || seq < rescue.onward.first ? rescue : placeOf(rescue.onward, seq);

const rescueKey = ({ session, lease }: Held): string => `${session}\0${termOf(lease)}`;

const isTakenOver = (error: unknown): error is SessionError =>
  error instanceof SessionError && error.code === 'taken-over';

interface LostSessionsOptions {
  /** Whether a journal holds refused writes. */
  readonly isDurable: boolean;
  readonly onRescued: RescuedListener;
  /** Called with the reason why the database does not take a fork at present. */
  readonly onOutage: (error: XtdbError) => void;
}

/**
 * The sessions of a client that can no longer be written. If another writer takes a session over,
 * this client's acknowledged writes go into a fork, in order. So none of them is dropped (decision
 * F6).
 */
export class LostSessions {
  readonly #store: ObjectStore;
  readonly #onRescued: RescuedListener;
  readonly #isDurable: boolean;
  readonly #writing: WriteOptions;
  /** Per session, the error of the newest failed term. Writers of later terms can continue. */
  readonly #failures = new Map<SessionId, { readonly error: Error; readonly term: number }>();
  /** The forks, by session and term. */
  readonly #rescues = new Map<string, Promise<Rescue>>();
  /** Per session, resolves once every failed write is stored or refused for good. */
  readonly #settling = new Map<SessionId, Promise<unknown>>();

  constructor(store: ObjectStore, { isDurable, onRescued, onOutage }: LostSessionsOptions) {
    this.#store = store;
    this.#onRescued = onRescued;
    this.#isDurable = isDurable;
    this.#writing = { persistent: true, onOutage };
  }

  /**
   * Returns the error that ended a session's writer. Undefined while the writer can continue.
   * Writers of later terms are not affected.
   */
  failure({ session, lease }: Held): Error | undefined {
    const failed = this.#failures.get(session);
    return failed === undefined || termOf(lease) > failed.term ? undefined : failed.error;
  }

  /**
   * Records that a write failed for good. Its writer must write no later steps, because the session
   * would have a gap.
   */
  fail(held: Held, error: unknown): void {
    if (this.failure(held) === undefined) this.#report(held, errorOf(error));
  }

  #report({ session, lease }: Held, error: Error): void {
    const term = termOf(lease);
    if (term >= (this.#failures.get(session)?.term ?? 0)) this.#failures.set(session, { error, term });
  }

  /**
   * Clears the failures of a session that is opened again, once its refused writes are stored
   * elsewhere. Returns false on timeout.
   */
  async forget(session: SessionId, limitMs: number): Promise<boolean> {
    if (!(await endsWithin(this.#settling.get(session) ?? Promise.resolve(), limitMs))) return false;
    for (const known of [this.#settling, this.#failures]) known.delete(session);
    for (const key of this.#rescues.keys()) if (key.startsWith(`${session}\0`)) this.#rescues.delete(key);
    return true;
  }

  /**
   * Stores a write that failed because another writer took its session over. Returns the error to
   * report. `settled` resolves once the write is stored or refused.
   * @throws {NotKeptError} the session or the fork refuses the write for good; its record stays in
   *   the journal
   */
  async keep(write: SessionWrite, error: unknown, settled: Promise<void>): Promise<Error> {
    const { session } = write;
    this.#settling.set(
      session,
      Promise.all([this.#settling.get(session), settled]).then(() => undefined),
    );
    if (!isRefusal(error)) throw error;
    if (!isTakenOver(error)) throw this.#notKept(write, 'the database refuses it', error);
    this.fail(write, error);
    try {
      return await this.#rescued(write, error);
    } catch (failure) {
      if (!isRefusal(failure)) throw failure;
      const refused = this.#notKept(
        write,
        `another writer continued session ${session}, and the database does not accept the write elsewhere`,
        failure,
      );
      // A client that reopens the session must see this error instead of the takeover.
      if (!this.#isNotKept(write)) this.#report(write, refused);
      throw refused;
    }
  }

  #isNotKept(held: Held): boolean {
    return this.failure(held) instanceof NotKeptError;
  }

  /**
   * Returns the error for a write refused for good. If an earlier write caused it, returns that
   * write's error. `refusal` says what refused it.
   */
  #notKept(write: SessionWrite, refusal: string, cause: unknown): NotKeptError {
    if (cause instanceof NotKeptError) return cause;
    return new NotKeptError(write, { refusal, cause, isDurable: this.#isDurable });
  }

  async #rescued(write: SessionWrite, error: SessionError): Promise<Error> {
    if (write.assembly !== undefined) {
      await this.#keepAssembly(write, write.assembly);
      return this.failure(write) ?? error;
    }
    if (write.step === undefined || write.lease === null || write.lease === undefined) return error;
    const key = rescueKey(write);
    const rescue = this.#intoFork(write, this.#rescues.get(key));
    this.#rescues.set(key, rescue);
    const { fork } = placeOf(await rescue, write.step.seq);
    // Name the fork only when it is complete, because opening it takes it over.
    await this.#atRest(key);
    const reported = new SessionError(
      'taken-over',
      `${error.message}; the steps acknowledged here are kept in session ${fork}`,
      {
        cause: error,
      },
    );
    if (!this.#isNotKept(write)) this.#report(write, reported);
    return reported;
  }

  /** Waits until all refused writes of a writer have reached their fork. */
  async #atRest(key: string): Promise<void> {
    for (let last: Promise<Rescue> | undefined; last !== this.#rescues.get(key); ) {
      last = this.#rescues.get(key);
      await last?.catch(() => undefined);
    }
  }

  /** Writes one step into the fork, after the earlier ones. An outage only delays it. */
  async #intoFork(write: SessionWrite, before: Promise<Rescue> | undefined): Promise<Rescue> {
    const rescue = await (before ?? this.#begin(write));
    await this.#put(write, rescue);
    return rescue;
  }

  async #put(write: SessionWrite, rescue: Rescue): Promise<void> {
    const moved = rescuedWrite(write, rescue);
    if (rescue.onward !== undefined) return this.#put(moved, rescue.onward);
    const { plan } = planWrite(this.#store, moved, { seen: true });
    try {
      const { result, txId } = await this.#store.writes.write(rescue.fork, plan, this.#writing);
      this.#onRescued(moved, result, txId);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (!isTakenOver(error))
        throw this.#notKept(
          write,
          `another writer continued its session, and the fork ${rescue.fork}, which should keep it, refuses it`,
          error,
        );
      rescue.onward = await this.#begin(moved);
      learnCalls(rescue, rescue.onward.renames.keys());
      await this.#put(rescuedWrite(write, rescue), rescue.onward);
    }
  }

  /**
   * Finds the fork that another process began for the earlier steps, or creates one that begins
   * with this step. An outage only delays it.
   */
  async #begin(write: SessionWrite): Promise<Rescue> {
    const { session, step } = write;
    if (step === undefined) throw new Error('BUG: only a step is rescued');
    const store = this.#store;
    const plan = async (): Promise<Planned<Rescue>> => {
      const snapshot = await store.latest();
      const earlier = await earlierFork(snapshot, write, step.seq);
      if (earlier !== undefined) return { ops: [], result: await this.#rescueIn(earlier, step.seq) };
      const fork = await freeFork(snapshot, write, step.seq);
      const { puts } = await forkHeads({ store, clock: Date.now }, session, { id: fork, at: step.seq - 1 });
      const head = puts.find((put) => put.head['xt/id'] === sessionObjectId(fork))?.head;
      if (head === undefined) throw new Error('BUG: a fork without the head of its session');
      return {
        ops: puts.flatMap((put) => store.storedOps(put)),
        result: { fork, lease: head, first: step.seq, renames: new Map() },
      };
    };
    try {
      return (await store.writes.write(`.rescue:${session}`, plan, this.#writing)).result;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      throw this.#notKept(
        write,
        `another writer continued session ${session}, and no fork of it can be created`,
        error,
      );
    }
  }

  /** Returns a fork that an earlier process left, prepared for the next step. */
  async #rescueIn(place: RescuePlace, seq: number): Promise<Rescue> {
    const { fork } = place;
    const snapshot = await this.#store.latest();
    const [heads, steps] = await Promise.all([snapshot.heads([sessionObjectId(fork)]), snapshot.steps(fork)]);
    const head = heads.get(sessionObjectId(fork));
    if (head === undefined || steps.length < seq - 1) {
      throw new SessionError(
        'sequence-gap',
        `session ${fork} has ${steps.length} steps; the step acknowledged as ${seq} does not follow them`,
      );
    }
    // A fork has epoch 1 until a client opens it. The guard on epoch 1 detects such a client.
    const rescue: Rescue = { ...place, lease: { ...head.document, epoch: 1 }, renames: new Map() };
    learnCalls(
      rescue,
      steps.flatMap(({ call }) => call?.id ?? []),
    );
    return rescue;
  }

  /**
   * Stores the assembly record of a context that was assembled without the database. It goes to the
   * fork if the context includes a step of the fork. Otherwise it goes to the session, which has
   * all its steps.
   */
  async #keepAssembly(write: SessionWrite, proof: AssemblyProof): Promise<void> {
    const rescue = await this.#rescues.get(rescueKey(write));
    const store = this.#store;
    const find = async (): Promise<Planned<RescuePlace | undefined>> => ({
      ops: [],
      result: await earlierFork(await store.latest(), write),
    });
    const place =
      rescue === undefined
        ? (await store.writes.write(`.rescue:${write.session}`, find, this.#writing)).result
        : placeOf(rescue, proof.step);
    const moved = place !== undefined && proof.step >= place.first;
    const kept: AssemblyProof = moved ? { ...proof, session: place.fork, rescuedFrom: proof.session } : proof;
    const keeping = { ...write, session: kept.session, assembly: kept };
    const plan = planAssembly(store, keeping, { seen: false, isLost: true });
    const { result, txId } = await store.writes.write(kept.session, plan, this.#writing);
    this.#onRescued(keeping, result, txId);
  }
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { SessionId } from '../../objects/ids.js';
import { endsWithin, withinLimit } from '../../process/within-limit.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { Plan } from '../../store/write-path.js';
import type { Gauges, Telemetry, Tell } from '../../telemetry/telemetry.js';
import { currentTrace, parseTraceparent, traceparentOf } from '../../telemetry/trace.js';
import { defined } from '../../values/defined.js';
import { begun } from '../../values/promises.js';
import { XtdbError } from '../../xtdb/errors.js';
import type { FileObservation } from '../decide-file.js';
import type { KnownVersions } from '../optimistic/known-versions.js';
import type { MetadataCache } from '../optimistic/metadata-cache.js';
import { TIME_LIMITS } from '../time-limits.js';
import type { AdoptedWrite, ClientJournal, Delivery, JournaledDelivery } from './client-journal.js';
import { Backpressure, DeliveryGate } from './delivery-gate.js';
import { laneOf, planAssembly, standsAlone } from './plan-assembly.js';
import { mayShare } from './plan-together.js';
import { planWrite } from './plan-write.js';
import type { AcceptedWrite, AppliedWrite, SessionWrite, WriteResult } from './session-write.js';
import { localVersions, tellUsage, writeFacts } from './session-write.js';
import type { Delivered, PlannedWrite, Writer, WrittenOne } from './writers.js';

/**
 * Called once for each transaction, when its first write leaves delivery. Gets all writes of the
 * transaction, in order. `txId` is undefined if the database had the writes already.
 */
type AppliedListener = (writes: readonly WrittenOne[], txId: number | undefined) => void;

/** The state of the outbox. */
export interface OutboxStatus {
  readonly waiting: number;
  /** Why the database does not take writes at present. */
  readonly outage: XtdbError | undefined;
}

/** The parts of an outbox. */
export interface OutboxParts {
  readonly store: ObjectStore;
  readonly metadata: MetadataCache;
  readonly versions: KnownVersions;
  readonly writer: Writer;
  /** Undefined for a client that acknowledges a write on commit. */
  readonly journal?: ClientJournal | undefined;
  readonly telemetry: Telemetry;
  /** Masks files that are indexed without a session. */
  readonly masked: (files: readonly FileObservation[]) => readonly FileObservation[];
}

/** Identifies a writer: a session has one per term of its lease (decision F5). */
export interface Held extends Pick<SessionWrite, 'session'> {
  readonly lease?: SessionWrite['lease'] | undefined;
}

/** Stores the writes that their session no longer accepts. */
export interface LostWrites {
  /** Returns the error that ended a session for its writer. Undefined while it is writable. */
  failure(held: Held): Error | undefined;
  /**
   * Stores a failed write elsewhere and returns the error to report. Rejects if it cannot be stored
   * anywhere. `settled` resolves once the write is stored or refused.
   */
  keep(failed: AdoptedWrite, error: unknown, settled: Promise<void>): Promise<Error>;
  /**
   * Records that a write failed for good. Its writer must write no later steps, because the session
   * would have a gap.
   */
  fail(held: Held, error: unknown): void;
}

/** Stores no failed write, so only the caller learns of the failure. */
const NO_RECOVERY: LostWrites = {
  failure: () => undefined,
  keep: async (_, error) => {
    throw error;
  },
  fail: () => undefined,
};

/** The lane of writes without a session. No session can have this id. */
const FILES_LANE = '.files' as SessionId;

/** Maximum number of writes in delivery before callers wait. */
const MOST_AHEAD = 500;

/**
 * Delivers a client's writes to the database (decisions F4 to F6). With a journal, a write is
 * acknowledged once it is journaled, then delivered once and in order, through outages. Without a
 * journal, it is acknowledged on commit. The writer decides about lanes and transactions.
 * `LostWrites` stores the writes that their session no longer accepts.
 */
export class Outbox {
  readonly #parts: OutboxParts;
  #lost: LostWrites = NO_RECOVERY;
  readonly #listeners = new Set<AppliedListener>();
  readonly #backpressure = new Backpressure();
  /** Acknowledged writes that are neither stored nor refused yet, with their lanes. */
  readonly #unsettled = new Set<{ readonly lane: string; readonly settled: Promise<void> }>();
  /** Delays deliveries while a model waits for its context. */
  readonly gate = new DeliveryGate();
  #outage: XtdbError | undefined;
  #pace: Promise<void> | undefined;
  #accepted = 0;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  /** Hands failed writes to `lost` from now on. */
  recoverWith(lost: LostWrites): void {
    this.#lost = lost;
  }

  get status(): OutboxStatus {
    return { waiting: this.#backpressure.count, outage: this.#outage };
  }

  /** Whether acknowledged writes survive the process and an outage of the node. */
  get isDurable(): boolean {
    return this.#parts.journal !== undefined;
  }

  /** Whether the journal is filling up while the database is down. */
  get nearFull(): boolean {
    return this.#parts.journal?.nearFull ?? false;
  }

  /** Registers a listener for each transaction from now on. Returns a function that removes it. */
  listen(listener: AppliedListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns the backlog, its age and whether the database takes writes. */
  gauges(): Gauges {
    const { bytes = 0, oldestAt } = this.#parts.journal?.backlog ?? {};
    return {
      'palimpsest.delivery.waiting': this.#backpressure.count,
      'palimpsest.delivery.oldest.age': oldestAt === undefined ? 0 : Math.max(0, Date.now() - oldestAt) / 1_000,
      'palimpsest.delivery.outage': this.#outage === undefined ? 0 : 1,
      'palimpsest.journal.size': bytes,
    };
  }

  /** Acknowledges a write. If it rejects, nothing was acknowledged. */
  async accept(unmarked: SessionWrite, requireOurs?: () => void): Promise<AcceptedWrite> {
    const { telemetry } = this.#parts;
    const trace = currentTrace();
    const write = trace === undefined ? unmarked : { ...unmarked, trace: traceparentOf(trace) };
    const accepted = await this.#accept(write, requireOurs);
    if (write.step !== undefined) telemetry.add('palimpsest.steps.acknowledged', 1);
    if (write.step?.usage !== undefined) tellUsage(telemetry, write.step.usage);
    return accepted;
  }

  async #accept(write: SessionWrite, requireOurs?: () => void): Promise<AcceptedWrite> {
    const { journal, writer } = this.#parts;
    if (journal !== undefined) {
      await this.#keepPace();
      return this.adopt(write, { seen: false, journaled: true, receipt: await journal.append(write, requireOurs) });
    }
    // Without a journal, sealing the call rejects text that cannot be stored exactly.
    void write.call?.version;
    if (writer.acknowledgesAtOnce) return this.adopt(write, { seen: false, journaled: false });
    return { applied: Promise.resolve(await this.#deliverNow(write, false)) };
  }

  /**
   * Stores the record of a handed-out context (decision E7). Resolves once the record is journaled.
   * Without a journal, it resolves at once, because nothing outlives the client.
   */
  async keep(write: SessionWrite): Promise<void> {
    if (this.#parts.journal === undefined) this.adopt(write, { seen: false, journaled: false });
    else await this.accept(write);
  }

  /**
   * Writes file observations that belong to no session [§5.6], such as a tracker's event or a
   * resume. Resolves when the database has them. Observations are not journaled, because files can
   * be read again. During an outage, the call waits if the client has a journal. Otherwise it
   * rejects.
   */
  index(files: readonly FileObservation[], at: number): Promise<AppliedWrite> {
    return this.#deliverNow({ session: FILES_LANE, files: this.#parts.masked(files), heads: [], at }, this.isDurable);
  }

  /** Waits for all file observations without a session. Returns false on timeout. */
  filesDrained(limitMs: number): Promise<boolean> {
    const { store, writer } = this.#parts;
    return store.writes.isBusy(writer.laneOf(FILES_LANE)) ? this.drained(FILES_LANE, limitMs) : Promise.resolve(true);
  }

  /** Waits for every accepted write of one session or of all sessions. Returns false on timeout. */
  drained(session: SessionId | undefined, limitMs: number): Promise<boolean> {
    const { metadata, store, writer } = this.#parts;
    metadata.deferred.flush();
    const lane = session === undefined ? undefined : writer.laneOf(session);
    const accepted = [...this.#unsettled].filter((one) => lane === undefined || one.lane === lane);
    // A flush does not wait for a write that its session refused, because that write has left the
    // lane and moves to a fork.
    const settled = () => Promise.all([store.writes.flush(lane), ...accepted.map((one) => one.settled)]);
    return endsWithin(this.gate.openFor(settled), limitMs);
  }

  /** Waits until at most `waiting` writes are in delivery. Returns false on timeout. */
  atMost(waiting: number, limitMs: number): Promise<boolean> {
    return endsWithin(
      this.gate.openFor(() => this.#backpressure.atMost(waiting)),
      limitMs,
    );
  }

  /** Slows down a caller far ahead of the database, because waiting writes are held in memory. */
  async #keepPace(): Promise<void> {
    if (this.#outage !== undefined || this.#backpressure.count <= MOST_AHEAD) return;
    this.#pace ??= this.#backpressure.atMost(MOST_AHEAD).finally(() => {
      this.#pace = undefined;
    });
    await withinLimit(this.#pace, TIME_LIMITS.pace, () => undefined);
  }

  /** Delivers an acknowledged write. A retried write keeps its position. */
  adopt(write: SessionWrite, how: JournaledDelivery, nth = this.#accepted++): AcceptedWrite {
    this.#backpressure.enter();
    const { deferred } = this.#parts.metadata;
    // Delivery starts after the response is sent, or earlier for a read or for a caller that waits
    // for the database. Failures surface to waiters and on the session's next step.
    return { applied: begun(new Promise((resolve) => deferred.add(() => resolve(this.#begin({ write, how, nth }))))) };
  }

  #begin({ write, how, nth }: AdoptedWrite): Promise<AppliedWrite> {
    const applied: Promise<AppliedWrite> = this.#deliver(write, { ...how, persistent: true })
      .catch((error: unknown) => this.#lost.keep({ write, how, nth }, error, settled))
      .finally(() => this.#backpressure.leave())
      .then((result) => {
        how.receipt?.done();
        if (result instanceof Error) throw result;
        return result;
      });
    const settled = applied.then(
      () => undefined,
      (error: unknown) => this.#lost.fail(write, error),
    );
    const { writer } = this.#parts;
    const one = { lane: writer.laneOf(laneOf(write)), settled };
    this.#unsettled.add(one);
    void settled.then(() => this.#unsettled.delete(one));
    return applied;
  }

  #deliver(write: SessionWrite, how: Delivery): Promise<AppliedWrite> {
    const watched = { activity: 'delivery', facts: writeFacts(write), parent: parseTraceparent(write.trace) } as const;
    return this.#parts.telemetry.observe(watched, (tell) => this.#bring(write, how, tell));
  }

  async #bring(write: SessionWrite, how: Delivery, tell: Tell): Promise<AppliedWrite> {
    const { metadata, versions, writer } = this.#parts;
    const own = how.persistent
      ? versions.acknowledge(
          () => localVersions(write, { metadata, newest: (id) => versions.newest(id) }),
          how.journaled,
        )
      : undefined;
    const settle = (): void => {
      if (own !== undefined) versions.settle(own);
    };
    try {
      const onOutage = (error: XtdbError): void => this.awayFor(error);
      const delivered = await writer.write(this.#planned(write, how), { persistent: how.persistent, onOutage });
      const { result, txId, together } = delivered;
      const writes = together.length === 0 ? undefined : together.length;
      tell(defined({ 'palimpsest.transaction.id': txId, 'palimpsest.transaction.writes': writes }));
      if (write.step !== undefined) this.#parts.telemetry.add('palimpsest.steps.delivered', 1);
      settle();
      this.take(delivered);
      return { ...result, txId };
    } catch (error) {
      // A refusal by the database shows that the outage is over. A write to a lost session fails
      // without a request, so its failure shows nothing.
      if (!(error instanceof XtdbError) && this.#lost.failure(write) === undefined) this.#outage = undefined;
      throw error;
    } finally {
      settle();
    }
  }

  /** Records why the database does not take writes at present. */
  awayFor(error: XtdbError): void {
    this.#outage = error;
  }

  /** Records that the database has these writes, and calls the listeners. */
  take({ result, txId, together }: Delivered): void {
    const { store, versions } = this.#parts;
    this.#outage = undefined;
    store.markStored(result.ops);
    versions.committed(result, txId);
    // Another writer's clock may be ahead, so our reads must include its time.
    for (const { validTime } of result.observed) store.noteTime(validTime.getTime());
    if (together.length > 0) for (const listener of this.#listeners) listener(together, txId);
  }

  async #deliverNow(write: SessionWrite, persistent: boolean): Promise<AppliedWrite> {
    // Earlier acknowledged writes go first.
    this.#parts.metadata.deferred.flush();
    this.#backpressure.enter();
    try {
      return await this.#deliver(write, { persistent, seen: false, journaled: false });
    } finally {
      this.#backpressure.leave();
    }
  }

  #planned(write: SessionWrite, { persistent, seen, bridge }: Delivery): PlannedWrite {
    const { store, writer } = this.#parts;
    const { findAuthor } = writer;
    const lane = writer.laneOf(laneOf(write));
    const ready = async (): Promise<void> => {
      if (persistent) {
        // The write is acknowledged, so the agent's response goes first.
        await this.gate.passed();
        await nextTurn();
      }
      // A session that lost a write accepts no later ones, because its steps would have a gap.
      const failure = standsAlone(write) ? undefined : this.#lost.failure(write);
      if (failure !== undefined) throw failure;
    };
    const planOf = (one: SessionWrite): Plan<WriteResult> =>
      one.assembly === undefined
        ? planWrite(store, one, { seen, own: writer.ownFiles, findAuthor }).plan
        : planAssembly(store, one, { seen });
    if (bridge !== undefined)
      return { write, lane, ready, plan: async (attempt) => planOf(await bridge.bridged(write, attempt))(attempt) };
    if (write.assembly !== undefined || !persistent || !mayShare(write))
      return { write, lane, ready, plan: planOf(write) };
    const { plan, tried } = planWrite(store, write, { seen, own: writer.ownFiles, findAuthor });
    return { write, lane, ready, plan, shares: tried, seen };
  }
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FileObservation } from '../../indexing/decide-file.js';
import type { SessionId } from '../../objects/ids.js';
import { endsWithin, withinLimit } from '../../process/within-limit.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { Plan } from '../../store/write-path.js';
import type { Gauges, Telemetry, Tell } from '../../telemetry/telemetry.js';
import { currentTrace, parseTraceparent, traceparentOf } from '../../telemetry/trace.js';
import { begun } from '../../values/begun.js';
import { defined } from '../../values/defined.js';
import { XtdbError } from '../../xtdb/errors.js';
import type { KnownVersions } from '../optimistic/known-versions.js';
import type { MetadataCache } from '../optimistic/metadata-cache.js';
import { TIME_LIMITS } from '../time-limits.js';
import type { AdoptedWrite, ClientJournal, Delivery, JournaledDelivery, OthersWrite } from './client-journal.js';
import type { DamagedJournal } from './damaged-journal.js';
import { Backpressure, DeliveryGate } from './delivery-gate.js';
import { LostSessions } from './lost-sessions.js';
import { NotKeptError, RefusedWrites } from './not-kept.js';
import { laneOf, mayShare, planAssembly, planWrite, standsAlone } from './plan-write.js';
import { localVersions, type SessionWrite, tellUsage, type WriteResult, writeFacts } from './session-write.js';
import { StepBridge } from './step-bridge.js';
import type { Delivered, PlannedWrite, Writer, WrittenOne } from './writers.js';

/** A write that the database has. */
export interface AppliedWrite extends WriteResult {
  /** Undefined when an earlier process had applied it. */
  readonly txId: number | undefined;
}

/** A write that is acknowledged: durable here, and on its way. */
export interface AcceptedWrite {
  /** Resolves when the database has it; rejects when it never will, which concerns the session as a whole. */
  readonly applied: Promise<AppliedWrite>;
}

/**
 * Called for each transaction with all writes of it, in their order, at the moment from which on the first no longer counts as on its way; without a number where
 * they were found to be there already.
 */
type AppliedListener = (writes: readonly WrittenOne[], txId: number | undefined) => void;

/** What the outbox says of itself. */
export interface OutboxStatus {
  readonly waiting: number;
  /** Why the database does not take writes at the moment. */
  readonly outage: XtdbError | undefined;
}

/** What an outbox works with. */
export interface OutboxParts {
  readonly store: ObjectStore;
  readonly metadata: MetadataCache;
  readonly versions: KnownVersions;
  readonly writer: Writer;
  /** Undefined for a client that acknowledges a write when it is committed. */
  readonly journal?: ClientJournal | undefined;
  readonly telemetry: Telemetry;
}

/** The lane of writes that belong to no session; no session can have this id. */
const FILES_LANE = '.files' as SessionId;

/** How many writes may be on their way before a caller waits for the database to take some of them. */
const MOST_AHEAD = 500;

/**
 * The writes of a client on their way to the database (decisions F4 to F6). With a journal a write is acknowledged once it is there, and delivered in
 * order and once, through outages; without one it is acknowledged when it is committed. The writer says in which lanes and how; what can no longer be
 * written to its session is kept by `LostSessions`.
 */
export class Outbox {
  readonly #parts: OutboxParts;
  readonly #lost: LostSessions;
  readonly #refused = new RefusedWrites<JournaledDelivery>();
  readonly #listeners = new Set<AppliedListener>();
  readonly #backpressure = new Backpressure();
  /** Acknowledged writes that are neither in the database nor where they are kept instead, with their lanes. */
  readonly #unsettled = new Set<{ readonly lane: string; readonly settled: Promise<void> }>();
  readonly #bridges = new WeakMap<DamagedJournal, StepBridge>();
  /** Holds deliveries back while a model waits. */
  readonly gate = new DeliveryGate();
  /** Records of living processes' journals that are delivered here, too, or were. */
  readonly #takenUp = new Set<string>();
  #outage: XtdbError | undefined;
  #pace: Promise<void> | undefined;
  /** How many writes were accepted or adopted. */
  #accepted = 0;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
    this.#lost = new LostSessions(parts.store, {
      isDurable: parts.journal !== undefined,
      onRescued: (write, result, txId) => this.#take({ result, txId, together: [{ write, result }] }),
      onOutage: (error) => this.#awayFor(error),
    });
  }

  get status(): OutboxStatus {
    return { waiting: this.#backpressure.count, outage: this.#outage };
  }

  /** Whether acknowledged writes outlive the process and the node's absence. */
  get isDurable(): boolean {
    return this.#parts.journal !== undefined;
  }

  /** Whether the journal is filling up while the database is away. */
  get nearFull(): boolean {
    return this.#parts.journal?.nearFull ?? false;
  }

  /** The error that ended a session under the lease that its writer holds; undefined while it can be written. */
  failure(session: SessionId, lease: SessionWrite['lease']): Error | undefined {
    return this.#lost.failure({ session, lease });
  }

  /** Refuses a session that nothing can be written to any more; with `tells` its user counts as told why. @throws what `failure` gives */
  requireWritable(session: SessionId, lease: SessionWrite['lease'], tells: boolean): void {
    const failure = this.failure(session, lease);
    if (tells && failure instanceof NotKeptError) this.#refused.tell(session);
    if (failure !== undefined) throw failure;
  }

  /** How many damaged journal files are kept in the data folder: each may have held steps of any session (decision 0011). */
  async losses(): Promise<number> {
    return (await this.#parts.journal?.losses()) ?? 0;
  }

  /** Calls a listener for each transaction that the database has from now on; the function that it returns ends that. */
  listen(listener: AppliedListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What waits, since when, and whether the database takes it. */
  gauges(): Gauges {
    const { bytes = 0, oldestAt } = this.#parts.journal?.backlog ?? {};
    return {
      'palimpsest.delivery.waiting': this.#backpressure.count,
      'palimpsest.delivery.oldest.age': oldestAt === undefined ? 0 : Math.max(0, Date.now() - oldestAt) / 1_000,
      'palimpsest.delivery.outage': this.#outage === undefined ? 0 : 1,
      'palimpsest.journal.size': bytes,
    };
  }

  /** Acknowledges a write. Rejects, with nothing acknowledged, when it could not be made durable. */
  async accept(write: SessionWrite): Promise<AcceptedWrite> {
    const { telemetry } = this.#parts;
    const trace = currentTrace();
    const accepted = await this.#accept(trace === undefined ? write : { ...write, trace: traceparentOf(trace) });
    if (write.step !== undefined) telemetry.add('palimpsest.steps.acknowledged', 1);
    if (write.step?.usage !== undefined) tellUsage(telemetry, write.step.usage);
    return accepted;
  }

  async #accept(write: SessionWrite): Promise<AcceptedWrite> {
    const { journal, writer } = this.#parts;
    if (journal !== undefined) {
      await this.#keepPace();
      return this.#adopt(write, { seen: false, journaled: true, receipt: await journal.append(write) });
    }
    // What a journal would refuse is refused here: text that cannot be stored exactly.
    void write.call?.version;
    if (writer.acknowledgesAtOnce) return this.#adopt(write, { seen: false, journaled: false });
    return { applied: Promise.resolve(await this.#deliverNow(write, false)) };
  }

  /**
   * Keeps the record of a context that is handed out (decision E7): resolves when it is durable here; the database follows, and nothing waits for it. A
   * client without a journal has nothing that outlives it, so there it resolves at once.
   */
  async keep(write: SessionWrite): Promise<void> {
    if (this.#parts.journal === undefined) this.#adopt(write, { seen: false, journaled: false });
    else await this.accept(write);
  }

  /**
   * Writes what was read of files on behalf of no session [§5.6]: a tracker's event, a resume. Resolves when the database has it. Not journaled: what is
   * lost with this process can be read again. Where steps outlive an outage, so does this; otherwise it rejects.
   */
  index(files: readonly FileObservation[], at: number): Promise<AppliedWrite> {
    return this.#deliverNow({ session: FILES_LANE, files, heads: [], at }, this.isDurable);
  }

  /** Takes over what dead processes of the data folder left (decision F6). Resolves when all is handed over, not when it is delivered. */
  async adoptLeft(): Promise<void> {
    await this.#parts.journal?.adoptAll((adopted) => this.#takeUp(adopted));
  }

  /** Delivers what another process acknowledged: it may be in the database already. */
  #takeUp({ write, damaged, receipt, place }: OthersWrite): void {
    if (damaged !== undefined && !this.#bridges.has(damaged)) this.#bridges.set(damaged, new StepBridge(this.#parts.store, damaged));
    const bridge = damaged === undefined ? undefined : this.#bridges.get(damaged);
    const { applied } = this.#adopt(write, { seen: true, journaled: false, bridge, ...defined({ receipt }) });
    if (place === undefined) return;
    this.#takenUp.add(place);
    applied.catch(() => this.#takenUp.delete(place));
  }

  /** Waits until living processes have delivered what they hold, of one session or of all; adopts what those leave that end meanwhile. False when that takes longer than the limit. */
  async othersDelivered(limitMs: number, session?: SessionId): Promise<boolean> {
    return (await this.#parts.journal?.othersDelivered(limitMs, { session, eachTime: () => this.adoptLeft() })) ?? true;
  }

  /** Waits until the database has what any process of the data folder acknowledged for a session so far; false when that takes longer than ten seconds. */
  async hasDelivered(session: SessionId): Promise<boolean> {
    return (await this.othersDelivered(TIME_LIMITS.delivery, session)) && this.drained(session, TIME_LIMITS.delivery);
  }

  /**
   * Brings what any process of the data folder acknowledged for a session to the database, for a client that holds the lock of the session: nobody else acknowledges anything for it. What
   * another living process has in its journal is delivered here, too, so that no slow process keeps it back; each step is written once, by whichever comes first.
   */
  async #bringAll(session: SessionId): Promise<boolean> {
    // A process that works delivers them sooner than two that get in each other's way.
    await this.othersDelivered(TIME_LIMITS.othersFirst, session);
    for (;;) {
      await this.adoptLeft();
      const held = (await this.#parts.journal?.heldByOthers(session, this.#takenUp)) ?? [];
      for (const one of held) this.#takeUp(one);
      if (!(await this.drained(session, TIME_LIMITS.delivery))) return false;
      // An acknowledgement that was under way when the lock was taken comes moments later.
      if (held.length === 0) return true;
    }
  }

  /**
   * Makes a session writable that is about to be opened by the client that holds its lock: brings everything that was acknowledged for it to the database, and tries again what was
   * refused of it before. False when that takes longer than ten seconds each.
   * @throws {NotKeptError} something that this client acknowledged was refused for good, and nobody was told yet; the next time the session is opened over the gap
   */
  async readies(session: SessionId): Promise<boolean> {
    const refused = this.#refused.of(session);
    if (!(await this.#bringAll(session)) || !(await this.#lost.forget(session, TIME_LIMITS.delivery))) return false;
    this.#refused.take(refused);
    for (const { write, how, nth } of refused) this.#adopt(write, { ...how, seen: true }, nth);
    if (refused.length > 0 && !(await this.drained(session, TIME_LIMITS.delivery))) return false;
    const untold = this.#refused.tell(session);
    if (untold !== undefined && this.#refused.of(session).length > 0) throw untold;
    return this.#lost.forget(session, TIME_LIMITS.delivery);
  }

  /** Waits until the database has what was read of files on behalf of no session so far; false when that takes longer than the limit. */
  filesDrained(limitMs: number): Promise<boolean> {
    const { store, writer } = this.#parts;
    return store.writes.isBusy(writer.laneOf(FILES_LANE)) ? this.drained(FILES_LANE, limitMs) : Promise.resolve(true);
  }

  /** Waits until the database has everything of a session (or of all) that was accepted so far; false when that takes longer than the limit. */
  drained(session: SessionId | undefined, limitMs: number): Promise<boolean> {
    const { metadata, store, writer } = this.#parts;
    metadata.late.now();
    const lane = session === undefined ? undefined : writer.laneOf(session);
    const accepted = [...this.#unsettled].filter((one) => lane === undefined || one.lane === lane);
    // A write that its session refused has left its lane, and is on its way into a fork.
    const settled = () => Promise.all([store.writes.flush(lane), ...accepted.map((one) => one.settled)]);
    return endsWithin(this.gate.openFor(settled), limitMs);
  }

  /** Waits until at most so many writes are on their way; false when that takes longer than the limit. */
  atMost(waiting: number, limitMs: number): Promise<boolean> {
    return endsWithin(
      this.gate.openFor(() => this.#backpressure.atMost(waiting)),
      limitMs,
    );
  }

  /** What waits for the database is held in memory: a caller that is far ahead of one that takes writes goes no faster than it. */
  async #keepPace(): Promise<void> {
    if (this.#outage !== undefined || this.#backpressure.count <= MOST_AHEAD) return;
    this.#pace ??= this.#backpressure.atMost(MOST_AHEAD).finally(() => {
      this.#pace = undefined;
    });
    await withinLimit(this.#pace, TIME_LIMITS.pace, () => undefined);
  }

  /** Delivers a write that is acknowledged already; one that is tried again keeps its place among all. */
  #adopt(write: SessionWrite, how: JournaledDelivery, nth = this.#accepted++): AcceptedWrite {
    this.#backpressure.enter();
    const { late } = this.#parts.metadata;
    // The answer that the agent waits for goes first; reads of what is known here, and whoever waits for the database, begin it earlier. A failure is told to whoever waits for it, and to the
    // session's next step.
    return { applied: begun(new Promise((resolve) => late.add(() => resolve(this.#begin({ write, how, nth }))))) };
  }

  #begin({ write, how, nth }: AdoptedWrite): Promise<AppliedWrite> {
    const applied: Promise<AppliedWrite> = this.#deliver(write, { ...how, persistent: true })
      .catch((error: unknown) => this.#lost.keep(write, error, settled))
      .catch((error: unknown) => {
        if (error instanceof NotKeptError) this.#refuse({ write, how, nth }, error);
        throw error;
      })
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

  /** Keeps what was refused for good where a journal has it. Whoever uses the session of this client is to be told once. */
  #refuse(refused: AdoptedWrite, error: NotKeptError): void {
    const { write, how } = refused;
    if (how.receipt === undefined) return;
    this.#refused.add(refused);
    how.receipt.refused(error);
    if (how.journaled && !how.seen) this.#refused.owe(write.session, error);
  }

  #deliver(write: SessionWrite, how: Delivery): Promise<AppliedWrite> {
    const watched = { activity: 'delivery', facts: writeFacts(write), parent: parseTraceparent(write.trace) } as const;
    return this.#parts.telemetry.observe(watched, (tell) => this.#bring(write, how, tell));
  }

  async #bring(write: SessionWrite, how: Delivery, tell: Tell): Promise<AppliedWrite> {
    const { metadata, versions, writer } = this.#parts;
    const own = how.persistent
      ? versions.acknowledge(() => localVersions(write, { metadata, newest: (id) => versions.newest(id) }), how.journaled)
      : undefined;
    const settle = (): void => {
      if (own !== undefined) versions.settle(own);
    };
    try {
      const onOutage = (error: XtdbError): void => this.#awayFor(error);
      const delivered = await writer.write(this.#planned(write, how), { persistent: how.persistent, onOutage });
      const { result, txId, together } = delivered;
      const writes = together.length === 0 ? undefined : together.length;
      tell(defined({ 'palimpsest.transaction.id': txId, 'palimpsest.transaction.writes': writes }));
      if (write.step !== undefined) this.#parts.telemetry.add('palimpsest.steps.delivered', 1);
      settle();
      this.#take(delivered);
      return { ...result, txId };
    } catch (error) {
      // Refused is answered too; what is lost already was not asked for again.
      if (!(error instanceof XtdbError) && this.#lost.failure(write) === undefined) this.#outage = undefined;
      throw error;
    } finally {
      settle();
    }
  }

  #awayFor(error: XtdbError): void {
    this.#outage = error;
  }

  /** Takes in what the database has of a write, or of those of its transaction. */
  #take({ result, txId, together }: Delivered): void {
    const { store, versions } = this.#parts;
    this.#outage = undefined;
    store.markStored(result.ops);
    versions.committed(result, txId);
    // Seen as the newest, whatever the clock of whoever wrote it said; own reads see it from now on.
    for (const { validTime } of result.observed) store.noteTime(validTime.getTime());
    if (together.length > 0) for (const listener of this.#listeners) listener(together, txId);
  }

  /** Delivers a write that its caller waits for. */
  async #deliverNow(write: SessionWrite, persistent: boolean): Promise<AppliedWrite> {
    // What was acknowledged before goes before it.
    this.#parts.metadata.late.now();
    this.#backpressure.enter();
    try {
      return await this.#deliver(write, { persistent, seen: false, journaled: false });
    } finally {
      this.#backpressure.leave();
    }
  }

  /** A write as its writer takes it: planned when it is its turn and no model waits. */
  #planned(write: SessionWrite, { persistent, seen, bridge }: Delivery): PlannedWrite {
    const { store, writer } = this.#parts;
    const lane = writer.laneOf(laneOf(write));
    const ready = async (): Promise<void> => {
      if (persistent) {
        // Acknowledged: the answer that the agent waits for goes first.
        await this.gate.passed();
        await nextTurn();
      }
      // A session of which one write is lost must not go on over the gap.
      const failure = standsAlone(write) ? undefined : this.#lost.failure(write);
      if (failure !== undefined) throw failure;
    };
    const planOf = (one: SessionWrite): Plan<WriteResult> =>
      one.assembly === undefined ? planWrite(store, one, { seen, own: writer.ownFiles }).plan : planAssembly(store, one, { seen });
    if (bridge !== undefined) return { write, lane, ready, plan: async (attempt) => planOf(await bridge.bridged(write, attempt))(attempt) };
    if (write.assembly !== undefined || !persistent || !mayShare(write)) return { write, lane, ready, plan: planOf(write) };
    const { plan, tried } = planWrite(store, write, { seen, own: writer.ownFiles });
    return { write, lane, ready, plan, shares: tried, seen };
  }
}

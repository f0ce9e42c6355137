import type { SessionId } from '../../objects/ids.js';
import type { ObjectStore } from '../../store/object-store.js';
import { defined } from '../../values/defined.js';
import type { AdoptedWrite, ClientJournal, JournaledDelivery, OthersWrite } from '../delivery/client-journal.js';
import type { DamagedJournal } from '../delivery/damaged-journal.js';
import { NotKeptError, RefusedWrites } from '../delivery/not-kept.js';
import type { Held, LostWrites, Outbox } from '../delivery/outbox.js';
import type { SessionWrite } from '../delivery/session-write.js';
import { TIME_LIMITS } from '../time-limits.js';
import { LostSessions } from './lost-sessions.js';
import { StepBridge } from './step-bridge.js';

/** The parts of a recovery. */
interface RecoveryParts {
  readonly store: ObjectStore;
  /** Undefined for a client that acknowledges a write on commit. */
  readonly journal: ClientJournal | undefined;
}

/**
 * Brings acknowledged writes to the database after failures (decisions F4 to F6). It adopts the
 * writes of processes that died and retries refused ones. Writes of a session that another writer
 * took over go into a fork. The outbox delivers them all.
 */
export class Recovery implements LostWrites {
  readonly #outbox: Outbox;
  readonly #parts: RecoveryParts;
  readonly #lost: LostSessions;
  readonly #refused = new RefusedWrites<JournaledDelivery>();
  readonly #bridges = new WeakMap<DamagedJournal, StepBridge>();
  /** Records of living processes' journals that this client also delivers or delivered. */
  readonly #takenUp = new Set<string>();

  /** From now on, the outbox passes failed writes to this object. */
  constructor(outbox: Outbox, parts: RecoveryParts) {
    this.#outbox = outbox;
    this.#parts = parts;
    this.#lost = new LostSessions(parts.store, {
      isDurable: parts.journal !== undefined,
      onRescued: (write, result, txId) => outbox.take({ result, txId, together: [{ write, result }] }),
      onOutage: (error) => outbox.awayFor(error),
    });
    outbox.recoverWith(this);
  }

  failure(held: Held): Error | undefined {
    return this.#lost.failure(held);
  }

  /**
   * Throws the `failure` of a session. With `informs`, the user sees the error, so it is not
   * reported again.
   */
  requireWritable(session: SessionId, lease: SessionWrite['lease'], informs: boolean): void {
    const failure = this.failure({ session, lease });
    if (failure === undefined) return;
    if (informs && failure instanceof NotKeptError) this.#refused.tell(session);
    throw failure;
  }

  fail(held: Held, error: unknown): void {
    this.#lost.fail(held, error);
  }

  async keep(failed: AdoptedWrite, error: unknown, settled: Promise<void>): Promise<Error> {
    try {
      return await this.#lost.keep(failed.write, error, settled);
    } catch (refusal) {
      if (refusal instanceof NotKeptError) this.#refuse(failed, refusal);
      throw refusal;
    }
  }

  /**
   * Keeps a refused write for a retry if a journal holds it. If this client acknowledged it, its
   * user sees the error once.
   */
  #refuse(refused: AdoptedWrite, error: NotKeptError): void {
    const { write, how } = refused;
    if (how.receipt === undefined) return;
    this.#refused.add(refused);
    how.receipt.refused(error);
    if (how.journaled && !how.seen) this.#refused.owe(write.session, error);
  }

  /** Returns the number of damaged journal files, which may hold any session (decision 0011). */
  async losses(): Promise<number> {
    return (await this.#parts.journal?.losses()) ?? 0;
  }

  /** Adopts dead processes' journals (decision F6). Resolves when their writes are in delivery. */
  async adoptLeft(): Promise<void> {
    await this.#parts.journal?.adoptAll((adopted) => this.#takeUp(adopted));
  }

  /** Delivers a write that another process acknowledged. The database may have it already. */
  #takeUp({ write, damaged, receipt, place }: OthersWrite): void {
    if (damaged !== undefined && !this.#bridges.has(damaged))
      this.#bridges.set(damaged, new StepBridge(this.#parts.store, damaged));
    const bridge = damaged === undefined ? undefined : this.#bridges.get(damaged);
    const { applied } = this.#outbox.adopt(write, { seen: true, journaled: false, bridge, ...defined({ receipt }) });
    if (place === undefined) return;
    this.#takenUp.add(place);
    applied.catch(() => this.#takenUp.delete(place));
  }

  /**
   * Waits for other processes' deliveries, and adopts the journals of processes that end. Returns
   * false on timeout.
   */
  async othersDelivered(limitMs: number, session?: SessionId): Promise<boolean> {
    return (await this.#parts.journal?.othersDelivered(limitMs, { session, eachTime: () => this.adoptLeft() })) ?? true;
  }

  /** Waits up to ten seconds until the database has all processes' records of a session. */
  async hasDelivered(session: SessionId): Promise<boolean> {
    return (
      (await this.othersDelivered(TIME_LIMITS.delivery, session)) && this.#outbox.drained(session, TIME_LIMITS.delivery)
    );
  }

  /**
   * Delivers all records of a session in the data folder; the caller holds the session's lock.
   * Includes records of living processes, so that a slow process does not block the delivery. Each
   * step is written once.
   */
  async #bringAll(session: SessionId): Promise<boolean> {
    // Let a living process deliver first, because two processes that compete are slower.
    await this.othersDelivered(TIME_LIMITS.othersFirst, session);
    for (;;) {
      await this.adoptLeft();
      const held = (await this.#parts.journal?.heldByOthers(session, this.#takenUp)) ?? [];
      for (const one of held) this.#takeUp(one);
      if (!(await this.#outbox.drained(session, TIME_LIMITS.delivery))) return false;
      // Repeat: a process may have acknowledged a write just before the lock changed hands.
      if (held.length === 0) return true;
    }
  }

  /**
   * Makes a session writable for a client that holds its lock and is about to open it. Delivers
   * everything acknowledged for the session and retries its refused writes. Returns false if one of
   * these takes more than ten seconds.
   * @throws {NotKeptError} a write of this client was refused for good and not reported yet; the
   *   next call opens the session without that write
   */
  async readies(session: SessionId): Promise<boolean> {
    const refused = this.#refused.of(session);
    if (!(await this.#bringAll(session)) || !(await this.#lost.forget(session, TIME_LIMITS.delivery))) return false;
    this.#refused.take(refused);
    for (const { write, how, nth } of refused) this.#outbox.adopt(write, { ...how, seen: true }, nth);
    if (refused.length > 0 && !(await this.#outbox.drained(session, TIME_LIMITS.delivery))) return false;
    const untold = this.#refused.tell(session);
    if (untold !== undefined && this.#refused.of(session).length > 0) throw untold;
    return this.#lost.forget(session, TIME_LIMITS.delivery);
  }
}

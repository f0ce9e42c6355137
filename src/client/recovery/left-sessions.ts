import { adoptableJournals, waitingRecords } from '../../journal/journals.js';
import { type SessionId, sessionObjectId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { readWrite } from '../delivery/damaged-journal.js';
import { isAssemblyStored } from '../delivery/plan-assembly.js';
import { alreadyApplied } from '../delivery/plan-write.js';
import type { SessionWrite } from '../delivery/session-write.js';
import { earlierFork, freeFork } from './rescue-fork.js';

/**
 * The effect of a delivery on the waiting records of a session:
 * - `stored`: nothing, because the database has them all
 * - `begins`: creates the session, which the database lacks
 * - `continues`: appends to the session
 * - `forks`: puts the records that the session lacks into a fork, because another writer continued
 *   it
 * - `unknown`: fails, because the database lacks the session
 */
export type SessionFate = 'stored' | 'begins' | 'continues' | 'forks' | 'unknown';

/** An undelivered session of abandoned journals, compared with a database. */
export interface LeftSession {
  readonly session: SessionId;
  readonly fate: SessionFate;
  /** Number of records not marked as delivered: steps, head changes and contexts. */
  readonly records: number;
  /** Number of these records that the database has. */
  readonly stored: number;
  /** The first and last step among them. Undefined if there is none. */
  readonly steps: readonly [first: number, last: number] | undefined;
  /** The fork for records that the session refuses, and its first step. */
  readonly fork: { readonly id: SessionId; readonly first: number } | undefined;
}

/**
 * Returns the fork that an earlier process began for refused steps. Otherwise returns the fork that
 * a delivery would begin at `seq`.
 */
async function forkOf(
  snapshot: StoreSnapshot,
  write: SessionWrite,
  seq: number,
): Promise<NonNullable<LeftSession['fork']>> {
  const { fork: id, first } = (await earlierFork(snapshot, write, seq)) ?? {
    fork: await freeFork(snapshot, write, seq),
    first: seq,
  };
  return { id, first };
}

/** Decides a session's fate from its records, in the order of delivery. */
class SessionJudge {
  readonly #session: SessionId;
  #fate: SessionFate = 'stored';
  #isRefused = false;
  #records = 0;
  #stored = 0;
  #steps: LeftSession['steps'];
  #fork: LeftSession['fork'];

  constructor(session: SessionId) {
    this.#session = session;
  }

  get verdict(): LeftSession {
    return {
      session: this.#session,
      fate: this.#fate,
      records: this.#records,
      stored: this.#stored,
      steps: this.#steps,
      fork: this.#fork,
    };
  }

  async follow(store: ObjectStore, snapshot: StoreSnapshot, write: SessionWrite): Promise<void> {
    const { step, assembly } = write;
    this.#records++;
    if (step !== undefined) this.#steps = [this.#steps?.[0] ?? step.seq, step.seq];
    const isStored =
      assembly === undefined ? await this.#place(store, snapshot, write) : await this.#isKept(snapshot, assembly);
    if (isStored) this.#stored++;
    else if (this.#fate === 'stored' && assembly !== undefined)
      this.#fate = (await this.#isThere(snapshot)) ? 'continues' : 'unknown';
  }

  async #isThere(snapshot: StoreSnapshot, session = this.#session): Promise<boolean> {
    const id = sessionObjectId(session);
    return (await snapshot.heads([id])).has(id);
  }

  async #isKept(snapshot: StoreSnapshot, assembly: NonNullable<SessionWrite['assembly']>): Promise<boolean> {
    if (await isAssemblyStored(snapshot, assembly)) return true;
    return this.#fork !== undefined && (await isAssemblyStored(snapshot, { ...assembly, session: this.#fork.id }));
  }

  /**
   * Returns whether the database has a write. The first missing write decides the session's fate.
   */
  async #place(store: ObjectStore, snapshot: StoreSnapshot, write: SessionWrite): Promise<boolean> {
    if (this.#isRefused) return this.#inFork(snapshot, write);
    if (this.#fate !== 'stored') return false;
    try {
      if (await alreadyApplied(store, snapshot, write)) return true;
      this.#fate = write.lease === null ? 'begins' : 'continues';
      return false;
    } catch (error) {
      if (!(error instanceof SessionError) || error.code !== 'taken-over') throw error;
    }
    if (!(await this.#isThere(snapshot))) {
      this.#fate = 'unknown';
      return false;
    }
    this.#isRefused = true;
    return this.#inFork(snapshot, write);
  }

  /**
   * Returns whether the fork already has a write that the session refuses. A write without a step
   * is not needed there, so it counts as stored.
   */
  async #inFork(snapshot: StoreSnapshot, write: SessionWrite): Promise<boolean> {
    const { step } = write;
    if (step === undefined) return true;
    this.#fork ??= await forkOf(snapshot, write, step.seq);
    const isThere = (await snapshot.step(this.#fork.id, step.seq)) !== undefined;
    if (!isThere) this.#fate = 'forks';
    return isThere;
  }
}

/**
 * Returns the sessions that wait in abandoned journals of a data folder, as a delivery to this
 * database would find them. Sorted by their first records. Changes nothing. Skips unreadable parts,
 * which `inspectJournals` reports.
 * @throws {JournalError} newer-format, io
 * @throws {XtdbError}
 */
export async function leftSessions(store: ObjectStore, dataDir: string): Promise<readonly LeftSession[]> {
  const snapshot = await store.latest();
  const judges = new Map<SessionId, SessionJudge>();
  for (const owner of await adoptableJournals(dataDir)) {
    for await (const { payload } of waitingRecords(dataDir, owner)) {
      const write = readWrite(payload);
      if (write instanceof Error) continue;
      const judge = judges.get(write.session) ?? new SessionJudge(write.session);
      judges.set(write.session, judge);
      await judge.follow(store, snapshot, write);
    }
  }
  return [...judges.values()].map(({ verdict }) => verdict);
}

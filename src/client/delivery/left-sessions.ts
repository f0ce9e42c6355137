import { adoptableJournals, waitingRecords } from '../../journal/journals.js';
import { type SessionId, sessionObjectId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { readWrite } from './damaged-journal.js';
import { alreadyApplied, isAssemblyStored } from './plan-write.js';
import { earlierFork, freeFork } from './rescue-fork.js';
import type { SessionWrite } from './session-write.js';

/**
 * What a delivery makes of a session's waiting records. `stored`: nothing, the database has them all; `begins`: a session that it does not have yet; `continues`: the session goes on;
 * `forks`: somebody else went on with the session, and what is not in it goes to a fork; `unknown`: it cannot be delivered, for the database lacks the session that it belongs to.
 */
export type SessionFate = 'stored' | 'begins' | 'continues' | 'forks' | 'unknown';

/** A session in journals that nobody delivers, seen against a database. */
export interface LeftSession {
  readonly session: SessionId;
  readonly fate: SessionFate;
  /** Records of it that are not marked as delivered: steps, changes of heads and contexts. */
  readonly records: number;
  /** How many of them the database has. */
  readonly stored: number;
  /** The first and the last step among them; undefined where there is none. */
  readonly steps: readonly [first: number, last: number] | undefined;
  /** The fork that keeps what the session cannot take, and its first step. */
  readonly fork: { readonly id: SessionId; readonly first: number } | undefined;
}

/** The fork that an earlier process has begun for what its session refused before a step, else the one that a delivery begins with it. */
async function forkOf(snapshot: StoreSnapshot, write: SessionWrite, seq: number): Promise<NonNullable<LeftSession['fork']>> {
  const { fork: id, first } = (await earlierFork(snapshot, write, seq)) ?? { fork: await freeFork(snapshot, write, seq), first: seq };
  return { id, first };
}

/** Follows the records of one session in their order, as a delivery would. */
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
    const isStored = assembly === undefined ? await this.#place(store, snapshot, write) : await this.#isKept(snapshot, assembly);
    if (isStored) this.#stored++;
    else if (this.#fate === 'stored' && assembly !== undefined) this.#fate = (await this.#isThere(snapshot)) ? 'continues' : 'unknown';
  }

  async #isThere(snapshot: StoreSnapshot, session = this.#session): Promise<boolean> {
    const id = sessionObjectId(session);
    return (await snapshot.heads([id])).has(id);
  }

  async #isKept(snapshot: StoreSnapshot, assembly: NonNullable<SessionWrite['assembly']>): Promise<boolean> {
    if (await isAssemblyStored(snapshot, assembly)) return true;
    return this.#fork !== undefined && (await isAssemblyStored(snapshot, { ...assembly, session: this.#fork.id }));
  }

  /** Whether the database has a write. What the first that it lacks meets decides for all after it. */
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

  /** Whether a write that its session refuses is in the fork: a change of heads without a step is not needed there. */
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
 * What waits in the journals that dead processes left in a data folder, as a delivery to this database would find it, by session in the order of their first records. Changes
 * nothing. What cannot be read is passed over: `inspectJournals` tells of it.
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

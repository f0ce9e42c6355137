import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FileObservation } from '../../indexing/decide-file.js';
import type { Json } from '../../objects/canonical-json.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { endsWithin } from '../../process/within-limit.js';
import { SessionError } from '../../session/errors.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { Plan, Written } from '../../store/write-path.js';
import type { XtdbError } from '../../xtdb/errors.js';
import { type MetadataCache, NOT_YET } from '../optimistic/metadata-cache.js';
import { OwnHeads } from '../optimistic/own-heads.js';
import type { RecentVersions } from '../optimistic/recent-versions.js';
import { FileOrder } from './file-order.js';
import { localVersions } from './local-versions.js';
import { laneOf, planAssembly, rescueAssembly, standsAlone } from './plan-assembly.js';
import { planWrite } from './plan-write.js';
import { QuietTimes } from './quiet-times.js';
import { type Rescue, rescueIntoFork } from './rescue-into-fork.js';
import { Room } from './room.js';
import type { MarkedVersion, SessionWrite, WriteResult } from './session-write.js';
import { encodeWrite } from './write-record.js';

/** Where acknowledged writes are kept until the database has them. */
export interface WriteJournal {
  /** Makes a record durable and gives its number; rejects, with nothing written, when it cannot. */
  append(record: Json): Promise<number>;
  /** Says that a record is in the database. */
  markDone(sequence: number): void;
  /** Whether little room is left. */
  readonly nearFull: boolean;
}

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

/** Told of each write that the database has, at the moment from which on it no longer counts as on its way. */
export type OnApplied = (write: SessionWrite, applied: AppliedWrite) => void;

/** What the outbox says of itself. */
export interface OutboxStatus {
  readonly waiting: number;
  /** Why the database does not take writes at the moment. */
  readonly outage: XtdbError | undefined;
}

interface Pending {
  readonly version: MarkedVersion;
  count: number;
}

function add(pending: Map<ObjectId, Pending>, version: MarkedVersion): void {
  const id = version.version['xt/id'];
  pending.set(id, { version, count: (pending.get(id)?.count ?? 0) + 1 });
}

/** Whether it was the last one of its object. */
function remove(pending: Map<ObjectId, Pending>, id: ObjectId): boolean {
  const found = pending.get(id);
  if (found === undefined) return false;
  found.count -= 1;
  return found.count === 0 && pending.delete(id);
}

/** The lane of writes that belong to no session; no session can have this id. */
const FILES_LANE = '.files' as SessionId;
/** The one lane of a client that is alone. */
const ONLY_LANE = '.all';

/**
 * The writes of a client on their way to the database (decisions F4 to F6). With a journal a write is acknowledged once it is there, and delivered in
 * order and once, through outages; without one it is acknowledged when it is committed. Its own reads see what is still under way.
 */
export class Outbox {
  readonly #store: ObjectStore;
  readonly #cache: MetadataCache;
  readonly #recent: RecentVersions;
  readonly #journal: WriteJournal | undefined;
  /** What a sole writer knows of its files; undefined where others may write them. */
  readonly #heads: OwnHeads | undefined;
  readonly #pending = new Map<ObjectId, Pending>();
  /** Those of them that outlive this process. */
  readonly #journaled = new Map<ObjectId, Pending>();
  readonly #listeners = new Set<OnApplied>();
  readonly #failures = new Map<SessionId, Error>();
  /** Ends when every write of a lost session that was refused so far is where it is kept. */
  readonly #failing = new Map<SessionId, Promise<unknown>>();
  readonly #rescues = new Map<SessionId, Promise<Rescue>>();
  readonly #fileOrder = new FileOrder();
  readonly #room = new Room();
  /** When there is time to deliver. */
  readonly quiet = new QuietTimes();
  #waiting = 0;
  #outage: XtdbError | undefined;

  /**
   * `alone`: nobody else writes what goes through here. Then the database is asked for a file once, and the writes of all sessions are one line, so that what
   * this process knew at any moment is what the database knew after that moment's transaction. Without a journal too a write is then acknowledged before it is
   * committed, and none waits for the outcome of the one before.
   */
  constructor(store: ObjectStore, cache: MetadataCache, recent: RecentVersions, journal: WriteJournal | undefined, alone = false) {
    this.#store = store;
    this.#cache = cache;
    this.#recent = recent;
    this.#journal = journal;
    this.#heads = alone ? new OwnHeads() : undefined;
  }

  get status(): OutboxStatus {
    return { waiting: this.#waiting, outage: this.#outage };
  }

  /** Whether acknowledged writes outlive the process and the node's absence. */
  get isDurable(): boolean {
    return this.#journal !== undefined;
  }

  #laneFor(lane: string): string {
    return this.#heads === undefined ? lane : ONLY_LANE;
  }

  /** Whether nothing of a write outlives this process, and nobody else writes. */
  get #isPipelined(): boolean {
    return this.#journal === undefined && this.#heads !== undefined;
  }

  /** Whether the journal is filling up while the database is away. */
  get nearFull(): boolean {
    return this.#journal?.nearFull ?? false;
  }

  /** Why nothing of a session can be written any more; undefined while all is well. */
  failure(session: SessionId): Error | undefined {
    return this.#failures.get(session);
  }

  /** Lets a session be written again that is opened anew, once what was lost of it is where it is kept; false when that takes longer than the limit. */
  async forgetFailure(session: SessionId, limitMs: number): Promise<boolean> {
    if (!(await endsWithin(this.#failing.get(session) ?? Promise.resolve(), limitMs))) return false;
    for (const known of [this.#failing, this.#rescues, this.#failures]) known.delete(session);
    return true;
  }

  /** The newest version of an object that is acknowledged and not yet in the database. */
  pending(id: ObjectId): MarkedVersion | undefined {
    return this.#pending.get(id)?.version;
  }

  /** The newest version of an object that is in the journal and not yet in the database: whatever happens to this process, the database will have it. */
  journaled(id: ObjectId): MarkedVersion | undefined {
    return this.#journaled.get(id)?.version;
  }

  /** Tells of what the database has from now on; the answer ends it. */
  listen(listener: OnApplied): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Acknowledges a write. Rejects, with nothing acknowledged, when it could not be made durable. */
  async accept(write: SessionWrite): Promise<AcceptedWrite> {
    if (this.#isPipelined) return this.adopt(write, () => undefined, false);
    if (this.#journal === undefined) {
      const applied = await this.#deliver(write, { persistent: false, seen: false });
      return { applied: Promise.resolve(applied) };
    }
    const journal = this.#journal;
    const sequence = await journal.append(encodeWrite(write));
    return this.adopt(write, () => journal.markDone(sequence), false, this.#journaled);
  }

  /**
   * Keeps the record of a context that is handed out (decision E7): resolves when it is durable here; the database follows, and nothing waits for it. A
   * client without a journal has nothing that outlives it, so there it resolves at once.
   */
  async keep(write: SessionWrite): Promise<void> {
    if (this.#journal === undefined) this.adopt(write, () => undefined, false);
    else await this.accept(write);
  }

  /**
   * Writes what was read of files on behalf of no session [§5.6]: a tracker's event, a resume. Resolves when the database has it. Not journaled: what is
   * lost with this process can be read again. Where steps outlive an outage, so does this; otherwise it rejects.
   */
  index(files: readonly FileObservation[], at: number): Promise<AppliedWrite> {
    return this.#deliver({ session: FILES_LANE, files, heads: [], at }, { persistent: this.isDurable, seen: false });
  }

  /** Takes over the delivery of a write that is durable already; `seen` says that the database may have it. */
  adopt(write: SessionWrite, done: () => void, seen = true, journaled?: Map<ObjectId, Pending>): AcceptedWrite {
    const applied = this.#deliver(write, { persistent: true, seen }, journaled)
      .catch((error: unknown) => {
        this.#failing.set(
          write.session,
          Promise.all([this.#failing.get(write.session), told]).then(() => undefined),
        );
        return this.#rescue(write, error);
      })
      .then((result) => {
        done();
        if (result instanceof Error) throw result;
        return result;
      });
    // Whoever waits for it learns of a failure; so does the session's next step.
    const told = applied.then(
      () => undefined,
      (error: unknown) => this.#fail(write.session, error),
    );
    return { applied };
  }

  /** Waits until the database has what was read of files on behalf of no session so far; false when that takes longer than the limit. */
  filesDrained(limitMs: number): Promise<boolean> {
    return this.#store.writes.isBusy(this.#laneFor(FILES_LANE)) ? this.drained(FILES_LANE, limitMs) : Promise.resolve(true);
  }

  /** Waits until the database has everything of a session (or of all) that was accepted so far; false when that takes longer than the limit. */
  drained(session: SessionId | undefined, limitMs: number): Promise<boolean> {
    const flushed = this.quiet.hurry(() => this.#store.writes.flush(session === undefined ? undefined : this.#laneFor(session)));
    return endsWithin(flushed, limitMs);
  }

  /** Waits until at most so many writes are on their way; false when that takes longer than the limit. */
  hasRoom(most: number, limitMs: number): Promise<boolean> {
    const freed = this.quiet.hurry(() => this.#room.of(most, this.#waiting));
    return endsWithin(freed, limitMs);
  }

  async #deliver(
    write: SessionWrite,
    how: { readonly persistent: boolean; readonly seen: boolean },
    journaled?: Map<ObjectId, Pending>,
  ): Promise<AppliedWrite> {
    const own = how.persistent ? localVersions(write, this.#cache) : [];
    this.#announce(own, journaled);
    this.#waiting += 1;
    try {
      const plan =
        write.assembly === undefined ? planWrite(this.#store, write, how.seen, this.#heads) : planAssembly(this.#store, write, how.seen);
      const onOutage = (error: XtdbError): void => {
        this.#outage = error;
      };
      const { result, txId } = await this.#write(write, plan, how.persistent, onOutage);
      this.#outage = undefined;
      this.#store.markStored(result.ops);
      this.#settle(own, journaled);
      this.#learn(result, txId);
      const applied = { ...result, txId };
      for (const listener of this.#listeners) listener(write, applied);
      return applied;
    } catch (error) {
      this.#settle(own, journaled);
      throw error;
    } finally {
      this.#waiting -= 1;
      this.#room.freed(this.#waiting);
    }
  }

  /** Plans and writes in the order of the session, and of the files that were read. */
  async #write(
    write: SessionWrite,
    plan: Plan<WriteResult>,
    persistent: boolean,
    onOutage: (error: XtdbError) => void,
  ): Promise<Written<WriteResult>> {
    const guarded = (turn: Promise<unknown> | undefined) => async (attempt: number) => {
      // Acknowledged: the answer that the agent waits for goes first.
      if (persistent && !this.#isPipelined) await this.quiet.quiet();
      if (persistent) await nextTurn();
      await turn;
      return (standsAlone(write) ? undefined : this.#refuseAfterFailure(write.session)) ?? plan(attempt);
    };
    const know = ({ files, met }: WriteResult): void => {
      this.#heads?.wrote(files);
      this.#heads?.met(met);
    };
    const lane = this.#laneFor(laneOf(write));
    // Its order is that of all writes, so also that of the readings of each file.
    if (persistent && this.#isPipelined) return this.#store.writes.pipeline(lane, guarded(undefined), { onSubmitted: know, onOutage });
    return this.#fileOrder.enter(write, async (turn) => {
      const written = await this.#store.writes.write(lane, guarded(turn), { persistent, onOutage });
      know(written.result);
      return written;
    });
  }

  /**
   * Puts a write whose session another writer took over into a fork, in order (decision F6), and answers what to tell; rethrows any other failure,
   * whose record then stays in the journal.
   */
  async #rescue(write: SessionWrite, error: unknown): Promise<Error> {
    if (!(error instanceof SessionError) || error.code !== 'taken-over') throw error;
    this.#fail(write.session, error);
    if (write.assembly !== undefined) {
      await rescueAssembly(this.#store, write, await this.#rescues.get(write.session));
      return this.#failures.get(write.session) ?? error;
    }
    if (write.step === undefined || write.lease === null || write.lease === undefined) return error;
    const before = this.#rescues.get(write.session);
    const rescue = rescueIntoFork(this.#store, write, before);
    this.#rescues.set(write.session, rescue);
    const { fork } = await rescue;
    const told = new SessionError('taken-over', `${error.message}; what was acknowledged here is kept in session ${fork}`, {
      cause: error,
    });
    this.#failures.set(write.session, told);
    return told;
  }

  /** A session of which one write is lost must not go on over the gap. */
  #refuseAfterFailure(session: SessionId): Promise<never> | undefined {
    const failure = this.#failures.get(session);
    return failure === undefined ? undefined : Promise.reject(failure);
  }

  #fail(session: SessionId, error: unknown): void {
    if (!this.#failures.has(session)) this.#failures.set(session, error instanceof Error ? error : new Error(String(error)));
  }

  #announce(versions: readonly MarkedVersion[], journaled: Map<ObjectId, Pending> | undefined): void {
    for (const version of versions) {
      add(this.#pending, version);
      if (journaled !== undefined) add(journaled, version);
      this.#cache.learn(version.version, version.marks, NOT_YET);
      this.#recent.set(version);
    }
  }

  #settle(versions: readonly MarkedVersion[], journaled: Map<ObjectId, Pending> | undefined): void {
    for (const { version } of versions) {
      if (journaled !== undefined) remove(journaled, version['xt/id']);
      if (remove(this.#pending, version['xt/id'])) this.#cache.settle(version['xt/id']);
    }
  }

  /** What the database made of a write, unless something newer of the same object is on its way. */
  #learn({ written, met, metAt }: WriteResult, txId: number | undefined): void {
    for (const { version, marks } of written) {
      this.#cache.learn(version, marks, txId);
      if (!this.#pending.has(version['xt/id'])) this.#recent.set({ version, marks });
    }
    // Read when the write was planned: what was committed since is newer.
    for (const { document, marks, validTime } of met) {
      this.#cache.learn(document, marks, metAt);
      // Seen as the newest, whatever the clock of whoever wrote it said; own reads see it from now on.
      this.#store.noteTime(validTime.getTime());
    }
  }
}

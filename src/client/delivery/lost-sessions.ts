import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { callSuffix, chatObjectId, type ObjectId, objectId, type SessionId, sessionId, sessionObjectId } from '../../objects/ids.js';
import type { SetChanges } from '../../objects/sets.js';
import { toolcallVersion } from '../../objects/versions.js';
import { endsWithin } from '../../process/within-limit.js';
import { SessionError } from '../../session/errors.js';
import type { ObjectStore } from '../../store/object-store.js';
import { defined } from '../../values/defined.js';
import { errorOf } from '../../values/thrown.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import { assemblyOps, isAssemblyStored, planWrite } from './plan-write.js';
import { forkSession } from './session-heads.js';
import type { SessionWrite } from './session-write.js';

/** The fork that keeps what a session's former writer had acknowledged. */
interface Rescue {
  readonly fork: SessionId;
  readonly lease: StoredDocument;
  /** The first step that it does not share with the session. */
  readonly first: number;
  /** The ids that calls have in the fork. */
  readonly renames: Map<ObjectId, ObjectId>;
}

type Rename = (id: ObjectId) => ObjectId;

/** The beginning of a fork's id: it shows the session and the epoch that it was cut from. */
const forkName = (session: SessionId, lease: StoredDocument | null | undefined): string =>
  `${session.slice(0, 150)}.fork-${Number(lease?.epoch ?? 1)}-`;

/** The fork that keeps a step of a session that another writer took over, and those after it. */
export const forkFrom = (session: SessionId, lease: SessionWrite['lease'] | undefined, seq: number): SessionId =>
  sessionId(`${forkName(session, lease)}${seq}`);

function renamed(changes: SetChanges, rename: Rename): SetChanges {
  return Object.fromEntries(Object.entries(changes).map(([what, ids]) => [what, (ids as readonly ObjectId[]).map(rename)]));
}

/** A write of a lost session as a step of its fork: content and order stay, the call's object gets an id of the fork's own, since the other writer may have used the old one. */
function rescuedWrite({ step, call, files, at }: SessionWrite, { fork, lease, renames }: Rescue): SessionWrite {
  const rename: Rename = (id) => renames.get(id) ?? id;
  if (call !== undefined) renames.set(call.version['xt/id'], objectId(`${call.version['xt/id']}${callSuffix(fork)}`));
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
  const { tool, args, args_display, status, file_refs, content } = call.version;
  const version = toolcallVersion({
    id: rename(call.version['xt/id']),
    tool,
    args,
    status,
    chatRef: chatObjectId(fork),
    content,
    ...defined({ argsDisplay: args_display, fileRefs: file_refs?.map(rename) }),
  });
  return { ...moved, step: movedStep, call: { ...call, version } };
}

/**
 * The sessions of a client that nothing can be written to any more. What was acknowledged for a session that another writer took over is put into a fork
 * of it, in order, so that nothing acknowledged is dropped (decision F6).
 */
export class LostSessions {
  readonly #store: ObjectStore;
  readonly #failures = new Map<SessionId, Error>();
  readonly #rescues = new Map<SessionId, Promise<Rescue>>();
  /** Ends when every write that was refused so far is where it is kept. */
  readonly #settling = new Map<SessionId, Promise<unknown>>();

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  /** Why nothing of a session can be written any more; undefined while it can. */
  failure(session: SessionId): Error | undefined {
    return this.#failures.get(session);
  }

  /** Notes that a write of a session failed for good: the session must not go on over the gap. */
  fail(session: SessionId, error: unknown): void {
    if (!this.#failures.has(session)) this.#failures.set(session, errorOf(error));
  }

  /** Lets a session that is opened anew be written again once its refused writes are where they are kept; false when that takes longer than the limit. */
  async forget(session: SessionId, limitMs: number): Promise<boolean> {
    if (!(await endsWithin(this.#settling.get(session) ?? Promise.resolve(), limitMs))) return false;
    for (const known of [this.#settling, this.#rescues, this.#failures]) known.delete(session);
    return true;
  }

  /**
   * Keeps a write that failed because another writer took its session over, and answers the error to report. Rethrows any other failure; the record of
   * that write then stays in the journal. `settled` resolves when the write has its end.
   */
  async keep(write: SessionWrite, error: unknown, settled: Promise<void>): Promise<Error> {
    const { session } = write;
    this.#settling.set(
      session,
      Promise.all([this.#settling.get(session), settled]).then(() => undefined),
    );
    if (!(error instanceof SessionError) || error.code !== 'taken-over') throw error;
    this.fail(session, error);
    if (write.assembly !== undefined) {
      await this.#keepAssembly(write, write.assembly);
      return this.#failures.get(session) ?? error;
    }
    if (write.step === undefined || write.lease === null || write.lease === undefined) return error;
    const rescue = this.#intoFork(write, this.#rescues.get(session));
    this.#rescues.set(session, rescue);
    const { fork } = await rescue;
    const reported = new SessionError('taken-over', `${error.message}; what was acknowledged here is kept in session ${fork}`, {
      cause: error,
    });
    this.#failures.set(session, reported);
    return reported;
  }

  /** Writes one step into the fork, after those before it. Persistent: an outage only delays it. */
  async #intoFork(write: SessionWrite, before: Promise<Rescue> | undefined): Promise<Rescue> {
    const rescue = await (before ?? this.#beginFork(write));
    const { plan } = planWrite(this.#store, rescuedWrite(write, rescue), { seen: true });
    await this.#store.writes.write(rescue.fork, plan, { persistent: true });
    return rescue;
  }

  /** Makes the fork at the step before the first one that is rescued; an earlier process may have made it already. */
  async #beginFork({ session, lease, step }: SessionWrite): Promise<Rescue> {
    if (step === undefined) throw new Error('BUG: only a step is rescued');
    const fork = forkFrom(session, lease, step.seq);
    try {
      await forkSession({ store: this.#store, clock: Date.now }, session, { id: fork, at: step.seq - 1 });
    } catch (error) {
      if (!(error instanceof SessionError) || error.code !== 'session-exists') throw error;
    }
    const head = (await (await this.#store.latest()).heads([sessionObjectId(fork)])).get(sessionObjectId(fork));
    if (head === undefined) throw new SessionError('unknown-session', `the fork ${fork} was written but cannot be found`);
    return { fork, lease: head.document, first: step.seq, renames: new Map() };
  }

  /**
   * Keeps the record of a context that was assembled without the database: with the steps that were put into a fork where it includes one of them, else
   * with the session, which then has all of them.
   */
  async #keepAssembly(write: SessionWrite, proof: AssemblyProof): Promise<void> {
    const place = (await this.#rescues.get(write.session)) ?? (await this.#earlierRescue(write));
    const moved = place !== undefined && proof.step >= place.first;
    const kept: AssemblyProof = moved ? { ...proof, session: place.fork, rescuedFrom: proof.session } : proof;
    const store = this.#store;
    await store.writes.write(
      kept.session,
      async (attempt) => {
        const there = attempt > 1 && (await isAssemblyStored(await store.latest(), kept));
        return { ops: there ? [] : assemblyOps(store, kept), result: undefined };
      },
      { persistent: true },
    );
  }

  /** The fork that an earlier process put the steps of a write's session into. */
  async #earlierRescue({ session, lease }: SessionWrite): Promise<Pick<Rescue, 'fork' | 'first'> | undefined> {
    const name = forkName(session, lease);
    const forks = (await (await this.#store.latest()).sessions()).filter(
      ({ id, parent }) => parent?.session === session && id.startsWith(name),
    );
    const [latest] = forks.toSorted((a, b) => (b.parent?.seq ?? 0) - (a.parent?.seq ?? 0));
    return latest?.parent === undefined ? undefined : { fork: latest.id, first: latest.parent.seq + 1 };
  }
}

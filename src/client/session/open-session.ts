import pLimit from 'p-limit';
import { type ObjectId, type SessionId, sessionObjectId, systemPromptObjectId } from '../../objects/ids.js';
import { systemPromptVersion } from '../../objects/versions.js';
import { SessionError } from '../../session/errors.js';
import { applySteps, emptySession, type SessionState } from '../../session/session-state.js';
import type { ForkPoint } from '../../store/head.js';
import { type ObjectStore, type StoredPut, storedPut } from '../../store/object-store.js';
import type { StoredSession } from '../../store/snapshot-rows.js';
import { stepId } from '../../store/step-part.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { erasedText, readTombstones } from '../../store/tombstones.js';
import { defined } from '../../values/defined.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import { isOutage, XtdbError } from '../../xtdb/errors.js';
import { type HeadPosition, headsAt } from '../delivery/session-heads.js';
import type { KnownObjects } from '../optimistic/metadata-cache.js';
import type { SessionEnvironment } from './session-environment.js';
import { requireRoots, rootsWith } from './session-roots.js';

/** How a session is opened. */
export interface OpenSessionOptions {
  /** The id of an existing or new session. Default: a fresh id. */
  readonly id?: string;
  /** Takes the session over from another process. */
  readonly takeOver?: boolean;
  /**
   * Whether a person opens the session to change its sets. Then this client's folders are not added
   * to the session's roots, and no source is read again.
   */
  readonly asPerson?: boolean;
  /**
   * Called with the number of read sources and their total [§3.6], also after the opening while the
   * rest is read.
   */
  readonly onProgress?: (done: number, total: number) => void;
}

/**
 * A session as loaded by this process: the state folded from its steps, and its head with its
 * position. The head guards every write (decision F5).
 */
export interface LoadedSession {
  readonly state: SessionState;
  readonly position: HeadPosition;
  readonly lease: StoredDocument;
  readonly prompt: string | null;
  /** Valid time of the prompt's version, in milliseconds. */
  readonly promptAt: number;
  /** Number of index ids that the snapshots hold already. */
  readonly indexedAtSnapshot: number;
  /** How far its objects were read at loading. Undefined if there was nothing to read. */
  readonly readAt?: KnownObjects;
  /**
   * Whether closing always writes the head. Other hosts cannot see our locks, so closing is
   * recorded in the database.
   */
  readonly tellsEnd?: boolean;
}

/** Returns the filesystems of other hosts among a session's roots. */
function othersOf(
  { files }: Pick<SessionEnvironment, 'files'>,
  roots: HeadPosition['roots'] = [],
): ReadonlySet<string> {
  const own = new Set([
    files.access.mounts.localFilesystemId,
    ...files.folders.map(({ filesystemId }) => filesystemId),
  ]);
  return new Set(roots.flatMap(({ filesystemId }) => (own.has(filesystemId) ? [] : [filesystemId])));
}

/** A session as read, with the head of its prompt, or null. */
interface ReadSession extends LoadedSession {
  readonly promptHead: StoredDocument | null;
}

/** Returns a session's head among a set of puts. */
export function leaseOf(puts: readonly StoredPut[], session: SessionId): StoredDocument {
  const put = puts.findLast(({ head }) => head['xt/id'] === sessionObjectId(session));
  if (put === undefined) throw new Error('BUG: heads without the session');
  return put.head;
}

/**
 * Creates a session. It is acknowledged like any write, so a session with a new id needs no
 * database (decision F5).
 */
export async function createSession(
  { outbox, metadata, clock, files }: SessionEnvironment,
  id: SessionId,
): Promise<LoadedSession> {
  const state = emptySession(id);
  const at = clock();
  const { puts, position } = headsAt(state, { at, term: 1, roots: files.folders });
  const prompt = storedPut({ version: systemPromptVersion(id, null), validTime: new Date(position.at) });
  const { applied } = await outbox.accept({ session: id, lease: null, files: [], heads: [...puts, prompt], at });
  applied.then(
    ({ txId }) => metadata.setKnown(id, { txId, objects: 0 }),
    () => undefined,
  );
  return { state, position, lease: leaseOf(puts, id), prompt: null, promptAt: position.at, indexedAtSnapshot: 0 };
}

/**
 * Reads a session's fold, head and prompt at a snapshot without taking it over. Returns undefined
 * if it does not exist.
 */
export async function loadSession(snapshot: StoreSnapshot, id: SessionId): Promise<ReadSession | undefined> {
  const heads = await snapshot.heads([sessionObjectId(id), systemPromptObjectId(id)]);
  const head = heads.get(sessionObjectId(id));
  if (head === undefined) return undefined;
  const [steps, { indexedAtSnapshot }, prompt] = await Promise.all([
    snapshot.steps(id),
    snapshot.sets(id),
    snapshot.get(systemPromptObjectId(id)),
  ]);
  const { epoch: term = 1, upto = 0, parent, roots } = head.marks;
  return {
    state: applySteps(emptySession(id), steps),
    position: { term, upto, at: head.validTime.getTime(), ...defined({ parent, roots }) },
    lease: head.document,
    prompt: prompt?.version.content ?? null,
    promptHead: heads.get(systemPromptObjectId(id))?.document ?? null,
    promptAt: heads.get(systemPromptObjectId(id))?.validTime.getTime() ?? 0,
    indexedAtSnapshot,
  };
}

/** Called with objects whose metadata was read. */
type MetadataListener = (ids: readonly ObjectId[]) => void;

/** Objects per read, so that the first ones can be used while the last are read. */
const LEARN_AT_ONCE = 500;
/**
 * Maximum concurrent reads. More would wait in the node, where the wait counts against their time
 * limit.
 */
const READS_AT_ONCE = 3;

async function loadMetadata(
  { metadata, store }: SessionEnvironment,
  snapshot: StoreSnapshot,
  { index, onLearned }: { readonly index: readonly ObjectId[]; readonly onLearned?: MetadataListener | undefined },
): Promise<void> {
  const learn = async (ids: readonly ObjectId[]): Promise<void> => {
    const heads = await snapshot.heads(ids);
    for (const { document, marks, validTime } of heads.values()) {
      metadata.learn(document, marks, snapshot.basis.txId);
      // Another writer's clock may be ahead, so our reads must include its time.
      store.noteTime(validTime.getTime());
    }
    onLearned?.(ids);
  };
  const parts = Array.from({ length: Math.ceil(index.length / LEARN_AT_ONCE) }, (_, i) =>
    index.slice(i * LEARN_AT_ONCE, (i + 1) * LEARN_AT_ONCE),
  );
  await pLimit(READS_AT_ONCE).map(parts, learn);
}

/**
 * Takes over an existing session. One transaction matches its head as read and raises the term, so
 * the former writer notices at its next step (decision F5). The new head includes every step, and
 * this client's folders unless a person opens the session. Steps inside a turn and prompts do not
 * move the head. With `isWhole`, the takeover therefore also guards against steps and prompts
 * written since the read. Returns undefined if a guard fails.
 */
async function takeOver(
  environment: SessionEnvironment,
  { promptHead, ...loaded }: ReadSession,
  { asPerson, isWhole }: { readonly asPerson: boolean; readonly isWhole: boolean },
): Promise<LoadedSession | undefined> {
  const { store, clock, files } = environment;
  const { position: before } = loaded;
  const roots = asPerson && before.roots !== undefined ? before.roots : rootsWith(files, before.roots);
  const { puts, position } = headsAt(loaded.state, { before, at: clock(), term: before.term + 1, roots });
  const guarded = puts.map((put) => (put.head.type === 'session' ? { ...put, expect: loaded.lease } : put));
  const { id, seq } = loaded.state;
  const read: readonly [string, StoredDocument | null][] = [
    [stepId(id, seq + 1), null],
    [systemPromptObjectId(id), promptHead],
  ];
  const { result } = await store.putMany(guarded, new Map(isWhole ? read : []));
  const tellsEnd = asPerson || othersOf(environment, before.roots).size > 0;
  return result ? { ...loaded, position, lease: leaseOf(puts, loaded.state.id), tellsEnd } : undefined;
}

/**
 * Rejects a person's takeover if an agent on another host may have the session open, because this
 * host's locks do not cover that host. The session counts as closed there if its writer moved the
 * head to the last step, and that step opened no turn.
 * @throws {SessionError} `lease-held`
 */
async function requireClosedElsewhere(
  environment: SessionEnvironment,
  snapshot: StoreSnapshot,
  { state, position }: LoadedSession,
): Promise<void> {
  const others = othersOf(environment, position.roots);
  if (others.size === 0) return;
  const [before, last] = await snapshot.historyOfHeads(sessionObjectId(state.id), 2);
  const isSettled =
    last !== undefined && before?.marks.epoch === last.marks.epoch && (last.marks.upto ?? 0) >= state.seq;
  // An unopened fork has its parent's roots, and an import has the roots of its origin.
  const imported = await snapshot.documents.importedAt(state.id);
  const isUnopened = (position.parent !== undefined && position.term === 1) || (imported ?? -1) >= (last?.txId ?? 0);
  if (isUnopened || (isSettled && (await snapshot.step(state.id, state.seq))?.opens === undefined)) return;
  throw new SessionError(
    'lease-held',
    `session ${state.id} was opened on another host, with files of the filesystem ${[...others].join(', ')}, and is ` +
      'not recorded as closed. A change from here would end the session for its agent there. Make the change on that ' +
      'host, or close the session there first. If that host no longer exists, open the session once with an agent ' +
      'here, and close it',
  );
}

/**
 * Returns the newest snapshot for opening a session.
 * @throws {XtdbError} no node answers; the error names what needs the database and what does not
 */
async function newestFor(store: ObjectStore, id: SessionId): Promise<StoreSnapshot> {
  try {
    return await store.latest();
  } catch (error) {
    if (!isOutage(error)) throw error;
    const why =
      `session ${id} cannot be opened until the database returns its state: ` +
      `${error.message} Run palimpsest doctor to see why; ` +
      'a new session without a given id can begin without the database.';
    throw new XtdbError(error.code, why, { cause: error, ...defined({ status: error.status }) });
  }
}

/**
 * Rejects an erased session's id. Otherwise a follower of transcripts would record the session
 * again.
 */
async function refuseErased({ documents }: StoreSnapshot, id: SessionId): Promise<void> {
  const tombstone = (await readTombstones(documents, [sessionObjectId(id)])).get(sessionObjectId(id));
  if (tombstone !== undefined)
    throw new SessionError('erased', `session ${id} was ${erasedText(tombstone)}. Use another name`);
}

/**
 * Number of takeover attempts with `isWhole`. A fast writer may defeat them all. So later attempts
 * guard only the head, and read the session again after the takeover.
 */
const MOST_WHOLE = 3;

/**
 * Opens the session with this id, with its chat, sets and metadata, or creates it. Needs the
 * database. For an existing session, `onLearned` receives the objects of its index in parts, as
 * soon as their metadata is read.
 * @throws {SessionError} `other-roots` – the session used folders outside this client's roots.
 * @throws {SessionError} `erased` – the session was erased.
 * @throws {SessionError} `lease-held` – a person opens it, and an agent on another host may have it
 *   open.
 * @throws {SessionError} `taken-over` – other writers keep opening it at the same time.
 * @throws {XtdbError} the database cannot be reached.
 */
export async function openSession(
  environment: SessionEnvironment,
  id: SessionId,
  {
    onLearned,
    asPerson = false,
    requireOurs = () => undefined,
  }: {
    readonly onLearned?: MetadataListener;
    readonly asPerson?: boolean;
    /** Throws if another process has taken the session's lock. */
    readonly requireOurs?: () => void;
  } = {},
): Promise<LoadedSession> {
  for (let attempt = 1; attempt <= 5; attempt++) {
    const snapshot = await newestFor(environment.store, id);
    await requireRoots(environment, snapshot, id);
    const existing = await loadSession(snapshot, id);
    if (await snapshot.documents.isArriving(id))
      throw new SessionError(
        'session-exists',
        `session ${id} is being imported; if that import was interrupted, run palimpsest import --finish ${id}`,
      );
    if (existing === undefined) {
      await refuseErased(snapshot, id);
      return createSession(environment, id);
    }
    if (asPerson) await requireClosedElsewhere(environment, snapshot, existing);
    // Check the lock after the read: a process that took it may have acknowledged steps under a
    // newer head. The takeover succeeds only on the head as read.
    requireOurs();
    const isWhole = attempt <= MOST_WHOLE;
    const taken = await takeOver(environment, existing, { asPerson, isWhole });
    if (taken === undefined) continue;
    const loaded = isWhole ? taken : await reloadSession(environment, taken);
    const { index } = loaded.state.sets;
    await loadMetadata(environment, snapshot, { index, onLearned });
    const { txId } = snapshot.basis;
    return txId === undefined ? loaded : { ...loaded, readAt: { txId, objects: index.length } };
  }
  throw new SessionError('taken-over', `session ${id} is being opened by several writers at once; try again`);
}

/**
 * Reads a session and its objects' metadata without taking it over. Undefined if it does not exist.
 */
export async function readSession(environment: SessionEnvironment, id: SessionId): Promise<LoadedSession | undefined> {
  const snapshot = await environment.store.latest();
  const loaded = await loadSession(snapshot, id);
  if (loaded !== undefined) await loadMetadata(environment, snapshot, { index: loaded.state.sets.index });
  return loaded;
}

/**
 * Loads a session again after a write with an unknown outcome.
 * @throws {SessionError} `taken-over` – its term has changed
 */
export async function reloadSession(environment: SessionEnvironment, before: LoadedSession): Promise<LoadedSession> {
  const { id } = before.state;
  const loaded = await readSession(environment, id);
  if (loaded === undefined || loaded.position.term !== before.position.term) {
    throw new SessionError('taken-over', `session ${id} was continued by another writer; open it again to continue it`);
  }
  return loaded;
}

/** A session in a list. */
export interface SessionSummary {
  readonly id: SessionId;
  readonly turns: number;
  /** Number of stored steps. For a session open here, it includes acknowledged steps. */
  readonly steps: number;
  /** Time of its last step, or of its head if that is later. */
  readonly lastActivity: Date;
  /** Its parent if it is a fork (decision F2). */
  readonly parent?: ForkPoint;
  /** Whether this client has it open. */
  readonly openHere: boolean;
}

function liveSummary(state: SessionState, stored: SessionSummary | undefined): SessionSummary {
  const lastActivity = new Date(Math.max(state.lastAt, stored?.lastActivity.getTime() ?? 0));
  return {
    id: state.id,
    turns: state.turn,
    steps: state.seq,
    lastActivity,
    ...defined({ parent: stored?.parent }),
    openHere: true,
  };
}

/** Number of running turns read in parallel. */
const RUNNING_AT_ONCE = 4;

/**
 * Returns all sessions at a snapshot, or those wanted by their heads, and this client's open
 * sessions that the snapshot lacks. The most recently active one comes first.
 */
export async function listSessions(
  snapshot: StoreSnapshot,
  open: readonly SessionState[],
  isWanted?: (session: StoredSession) => boolean,
): Promise<readonly SessionSummary[]> {
  const found = new Map<SessionId, SessionSummary>();
  const wanted =
    isWanted === undefined ? await snapshot.sessions() : (await snapshot.sessions({ roots: true })).filter(isWanted);
  for (const { id, turns, upto, validTime, parent } of wanted)
    found.set(id, { id, turns, steps: upto, lastActivity: validTime, ...defined({ parent }), openHere: false });
  const isOpen = new Set(open.map(({ id }) => id));
  // The head does not include the steps of a running turn, or of one that its process left
  // unfinished.
  await pLimit(RUNNING_AT_ONCE).map(
    await snapshot.running(wanted.filter(({ id }) => !isOpen.has(id))),
    async (session) => {
      const summary = found.get(session.id);
      const last = session.running ?? (await snapshot.lastRunning(session));
      if (summary !== undefined && last !== undefined)
        found.set(session.id, {
          ...summary,
          steps: last.seq,
          lastActivity: new Date(Math.max(last.at, summary.lastActivity.getTime())),
        });
    },
  );
  for (const state of open) found.set(state.id, liveSummary(state, found.get(state.id)));
  return [...found.values()].sort(
    (a, b) => b.lastActivity.getTime() - a.lastActivity.getTime() || (a.id < b.id ? -1 : 1),
  );
}

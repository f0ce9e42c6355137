import pLimit from 'p-limit';
import { acquireSessionLock, LeaseError, type SessionLock, sessionLockOwners } from '../../lease/session-lock.js';
import { type ObjectId, type SessionId, sessionObjectId, systemPromptObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { systemPromptVersion } from '../../objects/versions.js';
import { SessionError } from '../../session/errors.js';
import { applySteps, emptySession, type SessionState } from '../../session/session-state.js';
import type { ForkPoint } from '../../store/head.js';
import { type ObjectStore, type StoredPut, storedPut } from '../../store/object-store.js';
import { stepId } from '../../store/step-part.js';
import type { StoredSession, StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import { isOutage, XtdbError } from '../../xtdb/errors.js';
import { type HeadPosition, headsAt } from '../delivery/session-heads.js';
import type { KnownObjects } from '../optimistic/metadata-cache.js';
import type { SessionEnvironment } from './session-environment.js';
import { requireRoots, rootsWith } from './session-roots.js';

/** How a session is opened. */
export interface OpenSessionOptions {
  /** The id of an existing session, or of a new one; a fresh id when absent. */
  readonly id?: string;
  /** Moves a session here that another process has open. */
  readonly takeOver?: boolean;
  /** A person opens it to change its sets: nobody works below this client's folders, so they are not added to its record, and no source is read again. */
  readonly asPerson?: boolean;
  /** Called with how many of the session's sources have been read, of how many [§3.6]; also after it was opened, while the rest goes on. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** Where this process keeps its leases, and what it is called there. */
export interface LeaseSettings {
  readonly dataDir: string;
  readonly what: string;
}

/** Takes a session's lease (decision F5). @throws {SessionError} `lease-held` – names the process that has it, unless it is to be taken over */
export async function lockSession({ dataDir, what }: LeaseSettings, session: SessionId, takeOver: boolean): Promise<SessionLock> {
  try {
    return await acquireSessionLock(dataDir, session, { what, takeOver });
  } catch (error) {
    if (!(error instanceof LeaseError) || error.code !== 'held') throw error;
    throw new SessionError('lease-held', error.message, { cause: error });
  }
}

/** The living process that has a session of a data folder open, in words; undefined where none has. */
export async function holderIn(dataDir: string, session: SessionId): Promise<string | undefined> {
  const [owner] = await sessionLockOwners(dataDir, session);
  return owner === undefined ? undefined : `process ${owner.pid} (${owner.what})`;
}

/** A session as this process has loaded it: the fold of its steps, where its head stands, and the head itself, which guards every write (decision F5). */
export interface LoadedSession {
  readonly state: SessionState;
  readonly position: HeadPosition;
  readonly lease: StoredDocument;
  readonly prompt: string | null;
  /** Valid time of the prompt's version, milliseconds. */
  readonly promptAt: number;
  /** Ids of the index that the snapshots hold already. */
  readonly indexedAtSnapshot: number;
  /** How far its objects were read when it was loaded; undefined where nothing was there to be read. */
  readonly readAt?: KnownObjects;
  /** Whether closing it writes its head in any case: whoever cannot ask this host's locks has to find in the database that nobody goes on. */
  readonly tellsEnd?: boolean;
}

/** The filesystems of other hosts among the roots of a session. */
function othersOf({ files }: Pick<SessionEnvironment, 'files'>, roots: HeadPosition['roots'] = []): ReadonlySet<string> {
  const own = new Set([files.access.mounts.localFilesystemId, ...files.folders.map(({ filesystemId }) => filesystemId)]);
  return new Set(roots.flatMap(({ filesystemId }) => (own.has(filesystemId) ? [] : [filesystemId])));
}

/** A session as it was read, and the head of its prompt then; null where there was none. */
interface ReadSession extends LoadedSession {
  readonly promptHead: StoredDocument | null;
}

/** The head that a set of puts leaves behind for a session. */
export function leaseOf(puts: readonly StoredPut[], session: SessionId): StoredDocument {
  const put = puts.findLast(({ head }) => head['xt/id'] === sessionObjectId(session));
  if (put === undefined) throw new Error('BUG: heads without the session');
  return put.head;
}

/** Makes a new session; acknowledged like any other write, so that a session under a new id needs no database to begin (decision F5). */
export async function createSession({ outbox, metadata, clock, files }: SessionEnvironment, id: SessionId): Promise<LoadedSession> {
  const state = emptySession(id);
  const at = clock();
  const { puts, position } = headsAt(state, { at, epoch: 1, roots: files.folders });
  const prompt = storedPut({ version: systemPromptVersion(id, null), validTime: new Date(position.at) });
  const { applied } = await outbox.accept({ session: id, lease: null, files: [], heads: [...puts, prompt], at });
  applied.then(
    ({ txId }) => metadata.setKnown(id, { txId, objects: 0 }),
    () => undefined,
  );
  return { state, position, lease: leaseOf(puts, id), prompt: null, promptAt: position.at, indexedAtSnapshot: 0 };
}

/** Reads a session back without taking it over: its fold, head and prompt at a snapshot; undefined for an unknown one. */
export async function loadSession(snapshot: StoreSnapshot, id: SessionId): Promise<ReadSession | undefined> {
  const heads = await snapshot.heads([sessionObjectId(id), systemPromptObjectId(id)]);
  const head = heads.get(sessionObjectId(id));
  if (head === undefined) return undefined;
  const [steps, { indexedAtSnapshot }, prompt] = await Promise.all([
    snapshot.steps(id),
    snapshot.sets(id),
    snapshot.get(systemPromptObjectId(id)),
  ]);
  const { epoch = 1, upto = 0, parent, roots } = head.marks;
  return {
    state: applySteps(emptySession(id), steps),
    position: { epoch, upto, at: head.validTime.getTime(), ...defined({ parent, roots }) },
    lease: head.document,
    prompt: prompt?.version.content ?? null,
    promptHead: heads.get(systemPromptObjectId(id))?.document ?? null,
    promptAt: heads.get(systemPromptObjectId(id))?.validTime.getTime() ?? 0,
    indexedAtSnapshot,
  };
}

/** Called with objects whose metadata was read, and with how many objects there are. */
type MetadataListener = (ids: readonly ObjectId[], objects: number) => void;

/** How many objects are read at once, so that something can be done with the first ones while the last are on their way. */
const LEARN_AT_ONCE = 500;

async function loadMetadata(
  { metadata, store }: SessionEnvironment,
  snapshot: StoreSnapshot,
  { index, onLearned }: { readonly index: readonly ObjectId[]; readonly onLearned?: MetadataListener | undefined },
): Promise<void> {
  const learn = async (ids: readonly ObjectId[]): Promise<void> => {
    const heads = await snapshot.heads(ids);
    for (const { document, marks, validTime } of heads.values()) {
      metadata.learn(document, marks, snapshot.basis.txId);
      // What was read here as the newest stays the newest where another clock ran ahead.
      store.noteTime(validTime.getTime());
    }
    onLearned?.(ids, index.length);
  };
  await Promise.all(
    Array.from({ length: Math.ceil(index.length / LEARN_AT_ONCE) }, (_, i) =>
      learn(index.slice(i * LEARN_AT_ONCE, (i + 1) * LEARN_AT_ONCE)),
    ),
  );
}

/**
 * Takes an existing session over: the epoch in its head rises by match and put, so that its writer before notices at its next step
 * (decision F5). The head then includes every step, and the record of roots this client's folders, unless a person opens it. A step inside a turn does not
 * move the head, and neither does a prompt, so where the session is to be whole, both are guards of their own: none came since they were read, by whichever node.
 */
async function takeOver(
  environment: SessionEnvironment,
  { promptHead, ...loaded }: ReadSession,
  { asPerson, isWhole }: { readonly asPerson: boolean; readonly isWhole: boolean },
): Promise<LoadedSession | undefined> {
  const { store, clock, files } = environment;
  const { position: before } = loaded;
  const roots = asPerson && before.roots !== undefined ? before.roots : rootsWith(files, before.roots);
  const { puts, position } = headsAt(loaded.state, { before, at: clock(), epoch: before.epoch + 1, roots });
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
 * Refuses a session that a person would take away from an agent which the locks of this host know nothing of: one that was opened on another host, where nothing says that it was
 * closed there. Its newest head then stands where its last step is, written by whoever wrote the one before it, and not where a turn began.
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
  const isSettled = last !== undefined && before?.marks.epoch === last.marks.epoch && (last.marks.upto ?? 0) >= state.seq;
  // A fork that nobody has opened yet has its parent's roots, and what was imported those of where it came from.
  const imported = await snapshot.documents.importedAt(state.id);
  const isUnopened = (position.parent !== undefined && position.epoch === 1) || (imported ?? -1) >= (last?.txId ?? 0);
  if (isUnopened || (isSettled && (await snapshot.step(state.id, state.seq))?.opens === undefined)) return;
  throw new SessionError(
    'lease-held',
    `session ${state.id} was opened on another host, with files of the filesystem ${[...others].join(', ')}, and nothing says that it was closed there: a person's change would end it for its agent. Make the change there, or close it there first; where that host is gone, open it once with an agent here and close it`,
  );
}

/** The newest of everything, to open a session with. @throws {XtdbError} where no node answers, it says why that needs the database, and what does not */
async function newestFor(store: ObjectStore, id: SessionId): Promise<StoreSnapshot> {
  try {
    return await store.latest();
  } catch (error) {
    if (!isOutage(error)) throw error;
    const why = `session ${id} cannot be opened before the database says what is in it: ${error.message} Look at palimpsest doctor; a session without an id of its own begins without the database.`;
    throw new XtdbError(error.code, why, { cause: error, ...defined({ status: error.status }) });
  }
}

/** After so many attempts, a session is taken over in the middle of its writer's steps and read again: a writer that is quick enough would come first for ever. */
const MOST_WHOLE = 3;

/**
 * Opens the session of an id: the existing one, with its chat, sets and metadata, or a new one. Needs the database. `onLearned` is called
 * with the objects of an existing one's index as soon as their metadata was read, in several parts.
 * @throws {SessionError} `other-roots` – it was worked with below folders that this client may not use; `lease-held` – a person would take it away from an agent elsewhere; `taken-over` – others keep
 * opening it at the same time
 * @throws {XtdbError} when the database cannot be reached
 */
export async function openSession(
  environment: SessionEnvironment,
  id: SessionId,
  { onLearned, asPerson = false }: { readonly onLearned?: MetadataListener; readonly asPerson?: boolean } = {},
): Promise<LoadedSession> {
  for (let attempt = 1; attempt <= 5; attempt++) {
    const snapshot = await newestFor(environment.store, id);
    await requireRoots(environment, snapshot, id);
    const existing = await loadSession(snapshot, id);
    if (await snapshot.documents.isArriving(id))
      throw new SessionError(
        'session-exists',
        `session ${id} is being imported; where that was cut short, palimpsest import --finish ${id} brings the rest`,
      );
    if (existing === undefined) return createSession(environment, id);
    if (asPerson) await requireClosedElsewhere(environment, snapshot, existing);
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

/** Loads a session again after a write whose outcome was lost. @throws {SessionError} `taken-over` – its epoch has moved on */
export async function reloadSession(environment: SessionEnvironment, before: LoadedSession): Promise<LoadedSession> {
  const { id } = before.state;
  const snapshot = await environment.store.latest();
  const loaded = await loadSession(snapshot, id);
  if (loaded === undefined || loaded.position.epoch !== before.position.epoch) {
    throw new SessionError('taken-over', `session ${id} was continued by another writer; open it again to go on from where it stands`);
  }
  await loadMetadata(environment, snapshot, { index: loaded.state.sets.index });
  return loaded;
}

/** One session of a database, as a list shows it. */
export interface SessionSummary {
  readonly id: SessionId;
  readonly turns: number;
  /** Steps as of its last head: exact for a closed session and for one that is open here, else those before the running turn. */
  readonly steps: number;
  /** The moment of its last step as far as its head says; exact for one that is open here. */
  readonly lastActivity: Date;
  /** What it was forked from (decision F2). */
  readonly parent?: ForkPoint;
  /** Whether this client has it open. */
  readonly openHere: boolean;
}

function liveSummary(state: SessionState, stored: SessionSummary | undefined): SessionSummary {
  const lastActivity = new Date(Math.max(state.lastAt, stored?.lastActivity.getTime() ?? 0));
  return { id: state.id, turns: state.turn, steps: state.seq, lastActivity, ...defined({ parent: stored?.parent }), openHere: true };
}

/** Sessions whose running turns are read side by side. */
const RUNNING_AT_ONCE = 4;

async function lastStep(snapshot: StoreSnapshot, { id, upto }: StoredSession): Promise<Step | undefined> {
  const lineage = await snapshot.lineage(id);
  return lineage === undefined ? undefined : (await snapshot.stepsFrom(lineage, { first: upto + 1, upto })).at(-1);
}

/** All sessions at a snapshot, or those that are wanted by their heads, and those that this client has open beyond it, the one with the latest activity first. */
export async function listSessions(
  snapshot: StoreSnapshot,
  open: readonly SessionState[],
  isWanted: (session: StoredSession) => boolean = () => true,
): Promise<readonly SessionSummary[]> {
  const found = new Map<SessionId, SessionSummary>();
  const wanted = (await snapshot.sessions()).filter(isWanted);
  for (const { id, turns, upto, validTime, parent } of wanted)
    found.set(id, { id, turns, steps: upto, lastActivity: validTime, ...defined({ parent }), openHere: false });
  const isOpen = new Set(open.map(({ id }) => id));
  // A turn that runs, or that its process left in the middle, goes beyond the head.
  await pLimit(RUNNING_AT_ONCE).map(await snapshot.running(wanted.filter(({ id }) => !isOpen.has(id))), async (session) => {
    const summary = found.get(session.id);
    const last = await lastStep(snapshot, session);
    if (summary !== undefined && last !== undefined)
      found.set(session.id, { ...summary, steps: last.seq, lastActivity: new Date(Math.max(last.at, summary.lastActivity.getTime())) });
  });
  for (const state of open) found.set(state.id, liveSummary(state, found.get(state.id)));
  return [...found.values()].sort((a, b) => b.lastActivity.getTime() - a.lastActivity.getTime() || (a.id < b.id ? -1 : 1));
}

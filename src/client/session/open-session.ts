import { type ObjectId, type SessionId, sessionObjectId, systemPromptObjectId } from '../../objects/ids.js';
import { systemPromptVersion } from '../../objects/versions.js';
import { SessionError } from '../../session/errors.js';
import { applyStep, emptySession, type SessionState } from '../../session/session-state.js';
import { type StoredPut, storedPut } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import { type HeadPosition, headsAt } from '../delivery/turn-heads.js';
import type { SessionEnvironment } from './session-environment.js';

/** A session as this process holds it: the fold of its steps, where its head stands, and the head itself, which guards every write (decision F5). */
export interface HeldSession {
  readonly state: SessionState;
  readonly position: HeadPosition;
  readonly lease: StoredDocument;
  readonly prompt: string | null;
  /** Valid time of the prompt's version, milliseconds. */
  readonly promptAt: number;
  /** Ids of the index that the snapshots hold already. */
  readonly indexedAtSnapshot: number;
}

/** The head that a set of puts leaves behind for a session. */
export function leaseOf(puts: readonly StoredPut[], session: SessionId): StoredDocument {
  const put = puts.findLast(({ head }) => head['xt/id'] === sessionObjectId(session));
  if (put === undefined) throw new Error('BUG: heads without the session');
  return put.head;
}

/** Makes a new session; acknowledged like any other write, so that a session under a new id needs no database to begin (decision F5). */
export async function createHeldSession({ outbox, cache, clock }: SessionEnvironment, id: SessionId): Promise<HeldSession> {
  const state = emptySession(id);
  const at = clock();
  const { puts, position } = headsAt(state, undefined, at, 1);
  const prompt = storedPut({ version: systemPromptVersion(id, null), validTime: new Date(position.at) });
  const { applied } = await outbox.accept({ session: id, lease: null, files: [], heads: [...puts, prompt], at });
  applied.then(
    ({ txId }) => cache.setKnownUpto(id, txId),
    () => undefined,
  );
  return { state, position, lease: leaseOf(puts, id), prompt: null, promptAt: position.at, indexedAtSnapshot: 0 };
}

/** Reads a session back without taking it over: its fold, head and prompt at a snapshot; undefined for an unknown one. */
export async function readHeldSession(snapshot: StoreSnapshot, id: SessionId): Promise<HeldSession | undefined> {
  const heads = await snapshot.heads([sessionObjectId(id), systemPromptObjectId(id)]);
  const head = heads.get(sessionObjectId(id));
  if (head === undefined) return undefined;
  const [steps, { indexedAtSnapshot }, prompt] = await Promise.all([
    snapshot.steps(id),
    snapshot.sets(id),
    snapshot.get(systemPromptObjectId(id)),
  ]);
  const { epoch = 1, upto = 0, parent } = head.marks;
  return {
    state: steps.reduce(applyStep, emptySession(id)),
    position: { epoch, upto, at: head.validTime.getTime(), ...defined({ parent }) },
    lease: head.document,
    prompt: prompt?.version.content ?? null,
    promptAt: heads.get(systemPromptObjectId(id))?.validTime.getTime() ?? 0,
    indexedAtSnapshot,
  };
}

/** Told of objects whose metadata is there, and of how many there are. */
type OnLearned = (ids: readonly ObjectId[], objects: number) => void;

/** How many objects are read at once, so that something can be done with the first ones while the last are on their way. */
const LEARN_AT_ONCE = 500;

async function loadMetadata(
  { cache, store }: SessionEnvironment,
  snapshot: StoreSnapshot,
  { sets: { index } }: SessionState,
  onLearned: OnLearned = () => undefined,
): Promise<void> {
  const learn = async (ids: readonly ObjectId[]): Promise<void> => {
    const heads = await snapshot.heads(ids);
    for (const { document, marks, validTime } of heads.values()) {
      cache.learn(document, marks, snapshot.basis.txId);
      // What was read here as the newest is not unlearned where another clock ran ahead.
      store.noteTime(validTime.getTime());
    }
    onLearned(ids, index.length);
  };
  await Promise.all(
    Array.from({ length: Math.ceil(index.length / LEARN_AT_ONCE) }, (_, i) =>
      learn(index.slice(i * LEARN_AT_ONCE, (i + 1) * LEARN_AT_ONCE)),
    ),
  );
}

/**
 * Takes an existing session over: the epoch in its head rises by match and put, so that whoever held it before learns so at its next step
 * (decision F5). The head then includes every step.
 */
async function takeOver(environment: SessionEnvironment, held: HeldSession): Promise<HeldSession | undefined> {
  const { store, clock } = environment;
  const { puts, position } = headsAt(held.state, held.position, clock(), held.position.epoch + 1);
  const guarded = puts.map((put) => (put.head.type === 'session' ? { ...put, expect: held.lease } : put));
  const { result } = await store.putMany(guarded);
  return result ? { ...held, position, lease: leaseOf(puts, held.state.id) } : undefined;
}

/**
 * Opens the session of an id: the existing one, with its chat, sets and metadata, or a new one. Needs the database. Throws SessionError `taken-over`
 * when others keep opening it at the same time, XtdbError when the database cannot be reached. `onLearned` is told of the objects of an existing one's index
 * as soon as their metadata is there, some after others.
 */
export async function openHeldSession(environment: SessionEnvironment, id: SessionId, onLearned?: OnLearned): Promise<HeldSession> {
  for (let attempt = 1; attempt <= 5; attempt++) {
    const snapshot = await environment.store.latest();
    const existing = await readHeldSession(snapshot, id);
    if (existing === undefined) return createHeldSession(environment, id);
    const held = await takeOver(environment, existing);
    if (held === undefined) continue;
    await loadMetadata(environment, snapshot, held.state, onLearned);
    return held;
  }
  throw new SessionError('taken-over', `session ${id} is being opened by several writers at once; try again`);
}

/** Reads a held session again after a write whose outcome was lost; throws SessionError `taken-over` when its epoch has moved on. */
export async function reloadHeldSession(environment: SessionEnvironment, before: HeldSession): Promise<HeldSession> {
  const { id } = before.state;
  const snapshot = await environment.store.latest();
  const held = await readHeldSession(snapshot, id);
  if (held === undefined || held.position.epoch !== before.position.epoch) {
    throw new SessionError('taken-over', `session ${id} was continued by another writer; open it again to go on from where it stands`);
  }
  await loadMetadata(environment, snapshot, held.state);
  return held;
}

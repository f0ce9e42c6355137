import { type AroundTail, renderAround } from '../../assembly/around-tail.js';
import { type Assembly, assemble } from '../../assembly/assemble.js';
import type { AssemblyRecord, CallLayout, FrozenTail } from '../../assembly/assembly-record.js';
import { type EpochContext, type EpochInput, type EpochPlace, type EpochState, renderEpoch } from '../../assembly/epoch/epoch-state.js';
import type { AssemblyInput } from '../../assembly/layout.js';
import type { ObjectMetadata } from '../../assembly/metadata.js';
import { metadataOf } from '../../assembly/metadata.js';
import { type MessageAssembly, renderMessages } from '../../assembly/render-messages.js';
import { ContextReader } from '../../history/rebuild/context-reader.js';
import type { AbsentObjects, Delivery, HandedList, ShownAhead } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { withinLimit } from '../../process/within-limit.js';
import type { SessionState } from '../../session/session-state.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import { isOutage, XtdbError } from '../../xtdb/errors.js';
import { END_OF_TIME } from '../../xtdb/transactions.js';

import { knownContext } from '../optimistic/known-context.js';
import type { MarkedVersion } from '../optimistic/known-versions.js';
import type { OptimisticContext, ViewedSession } from '../optimistic/optimistic-view.js';
import { TIME_LIMITS } from '../time-limits.js';
import type { LoadedSession } from './open-session.js';

import type { SessionEnvironment } from './session-environment.js';

/** The record of one assembly (decision E7): enough to rebuild it from the database alone. */
export interface SessionAssemblyRecord extends AssemblyRecord {
  readonly session: SessionId;
  readonly turn: number;
  /** The last step that it includes. */
  readonly step: number;
  /** Undefined when it was assembled while the database was away: nothing was read for it. */
  readonly basis: Basis | undefined;
  /** What it shows in another version than the basis has; only for one that waited for no transaction, and one without a basis (decision 0010). */
  readonly ahead?: readonly ShownAhead[];
  /** The transaction at which all else has the version that it shows; only for one without a basis, absent where `ahead` names everything. */
  readonly aheadOf?: number;
  /** How far it is behind what others wrote, as `AssemblyProof` has it; absent for one that is current. */
  readonly behind?: number | null;
  /** What the session's sets hold and it could not show; only for one without a basis. */
  readonly absent?: AbsentObjects;
  /** How it reached its model; absent as long as it was not handed out. */
  readonly delivered?: Delivery;
  /** The whole list that it was handed over in, where the harness mixed it with messages of its own. */
  readonly handed?: HandedList;
}

/** A context as messages with parts, with its record. */
export interface SessionMessageAssembly extends MessageAssembly {
  readonly record: SessionAssemblyRecord;
}

/** An assembled context with its record. */
export interface SessionAssembly extends Assembly {
  readonly record: SessionAssemblyRecord;
  /** The same context as messages with parts (decision E3). */
  readonly asMessages: () => SessionMessageAssembly;
  /** The same context around the running turn that a harness keeps itself. */
  readonly asAround: (tail: FrozenTail) => SessionAroundTail;
  /** The session as it was then, and what it is made of. */
  readonly state: SessionState;
  readonly input: EpochInput;
  /** A request of an epoch whose prompt, options and place are those of this context (divergence E9). */
  readonly asEpoch: (state: EpochState, place: EpochPlace) => SessionEpochContext;
}

/** A request of an epoch, with its record. */
export interface SessionEpochContext extends EpochContext {
  readonly record: SessionAssemblyRecord;
}

/** A context around a turn that the harness keeps, with its record. */
export interface SessionAroundTail extends AroundTail {
  readonly record: SessionAssemblyRecord;
}

/** The literal behaviour, and short ids; the client's own settings where absent. */
export interface AssembleOptions {
  readonly strict?: boolean;
  readonly shortIds?: boolean;
  /** `ssot` if left out. */
  readonly layout?: CallLayout;
  /**
   * How long the database may take, milliseconds; then the context is assembled from what this process knows. If left out, only waiting for the steps is
   * limited, to two seconds.
   */
  readonly timeoutMs?: number;
  /** Assembles from the optimistic view, without waiting for this client's own transactions, where the context can be made again later (decision 0010). */
  readonly optimistic?: boolean;
}

type MetadataOf = (id: ObjectId) => ObjectMetadata | undefined;

/** The metadata of an index as a snapshot has it. */
async function metadataAt({ files }: SessionEnvironment, snapshot: StoreSnapshot, index: readonly ObjectId[]): Promise<MetadataOf> {
  const heads = await snapshot.heads(index);
  const known = new Map<ObjectId, ObjectMetadata | undefined>();
  for (const [id, { document, marks }] of heads) known.set(id as ObjectId, metadataOf(document, marks, files));
  return (id) => known.get(id);
}

/**
 * Those objects of a session whose heads have to be read again at a snapshot: those that others wrote since, those whose date has come, and those that nobody has read; all
 * where that is not known.
 */
async function unreadAt({ metadata, store }: SessionEnvironment, { id, sets: { index } }: SessionState, { txId, validTime }: Basis) {
  const known = metadata.knownUpto(id);
  if (txId === undefined || known === undefined) return index;
  const isDue = (one: ObjectId): boolean => metadata.isDue(one, validTime);
  if (store.writes.own.cover(known.txId, txId)) return index.filter(isDue);
  const written = await store.writtenBetween(index, known.txId, txId);
  if (written === undefined) return index;
  return index.filter((one, place) => written.has(one) || place >= known.objects || metadata.get(one) === undefined || isDue(one));
}

/** Reads heads as a snapshot has them. Another machine's clock may have dated one later than now: it is read again once its date has come, since no transaction names it then. */
async function learnHeads({ metadata, store }: SessionEnvironment, snapshot: StoreSnapshot, ids: readonly ObjectId[]): Promise<void> {
  const { txId, validTime } = snapshot.basis;
  const newest = txId === undefined || ids.length === 0 ? snapshot : store.newestAt(txId);
  const later: ObjectId[] = [];
  for (const [id, { document, marks, validTime: from }] of await newest.heads(ids)) {
    metadata.setDue(id as ObjectId, { from, at: validTime });
    if (from > validTime) later.push(id as ObjectId);
    else metadata.learn(document, marks, txId);
  }
  for (const { document, marks } of (await snapshot.heads(later)).values()) metadata.learn(document, marks, txId);
}

/** What is known of a session's objects, brought to a snapshot; nothing is read as long as only this client wrote since the last time. */
async function currentMetadata(environment: SessionEnvironment, snapshot: StoreSnapshot, state: SessionState): Promise<MetadataOf> {
  const { metadata } = environment;
  const { txId } = snapshot.basis;
  const { index } = state.sets;
  await learnHeads(environment, snapshot, await unreadAt(environment, state, snapshot.basis));
  metadata.setKnown(state.id, { txId, objects: index.length });
  // Another session of this client may have written since the basis was pinned; then only the snapshot itself has what stood then.
  if (txId !== undefined && !index.every((id) => metadata.isAsOf(id, txId))) return metadataAt(environment, snapshot, index);
  // Held as it is at this moment: it may write while the contents are waited for.
  const held = new Map(index.map((id) => [id, metadata.get(id)]));
  return (id) => held.get(id);
}

interface Parts {
  readonly state: SessionState;
  readonly prompt: string | null;
  readonly metadata: MetadataOf;
  readonly version: (id: ObjectId) => MarkedVersion | undefined;
  /** Where it was read, and what it shows in other versions. */
  readonly place: Pick<SessionAssemblyRecord, 'basis' | 'ahead' | 'aheadOf' | 'behind' | 'absent'>;
}

function assembleParts(environment: SessionEnvironment, parts: Parts, options: AssembleOptions): SessionAssembly {
  const { state, prompt } = parts;
  const { files } = environment;
  const active = state.sets.active.flatMap((id) => {
    const object = parts.version(id);
    const described = object === undefined ? undefined : metadataOf(object.version, object.marks, files);
    return object === undefined || described === undefined ? [] : [{ metadata: described, content: object.version.content }];
  });
  const pool = state.sets.index.flatMap((id) => parts.metadata(id) ?? []);
  return assemblyOf(environment, { ...parts, input: { systemPrompt: prompt, pool, active } }, options);
}

/** What a context is made of, and where it was read. */
interface ContextInput extends Pick<Parts, 'state' | 'place'> {
  readonly input: Omit<AssemblyInput, 'options' | 'turns'>;
}

function assemblyOf({ strict, shortIds }: SessionEnvironment, context: ContextInput, options: AssembleOptions): SessionAssembly {
  const { state, place: read } = context;
  const chosen = { strict: options.strict ?? strict, shortIds: options.shortIds ?? shortIds };
  const input: EpochInput = {
    ...context.input,
    // A request that goes on with an epoch has no use for them.
    get turns() {
      return state.turns;
    },
    options: chosen,
    index: state.sets.index,
    chatSince: (step) => state.marksAfter(step),
  };
  const withPlace = <T extends { readonly record: AssemblyRecord }>(rendered: T): T & { readonly record: SessionAssemblyRecord } => ({
    ...rendered,
    record: { ...rendered.record, session: state.id, turn: state.turn, step: state.seq, ...read },
  });
  let text: (Assembly & { readonly record: SessionAssemblyRecord }) | undefined;
  const asText = (): Assembly & { readonly record: SessionAssemblyRecord } => {
    text ??= withPlace(assemble(input));
    return text;
  };
  return {
    // Written when it is asked for: a model call in a loop waits, and wants another form.
    get sections() {
      return asText().sections;
    },
    get text() {
      return asText().text;
    },
    get record() {
      return asText().record;
    },
    asMessages: () => withPlace(renderMessages(input)),
    asAround: (tail) => withPlace(renderAround(input, tail, options.layout)),
    state,
    input,
    asEpoch: (epoch, place) => withPlace(renderEpoch(epoch, input, place)),
  };
}

/** Whether a version that this process holds has the content that the snapshot's metadata names: then it need not be read again. */
function isSame({ version }: MarkedVersion, metadata: ObjectMetadata | undefined): boolean {
  if (metadata === undefined || metadata.contentHash === null || version.content_hash !== metadata.contentHash) return false;
  return metadata.type === 'toolcall' || (metadata.state === 'indexed' && version.file_hash === metadata.fileHash);
}

interface AssembledSession extends ViewedSession {
  readonly metadata: MetadataOf;
  readonly options: AssembleOptions;
}

async function assembleAt(
  environment: SessionEnvironment,
  snapshot: StoreSnapshot,
  { state, prompt, metadata, options }: AssembledSession,
): Promise<SessionAssembly> {
  const { versions } = environment;
  const known = new Map<ObjectId, MarkedVersion>();
  for (const id of state.sets.active) {
    const version = versions.recent(id);
    if (version !== undefined && isSame(version, metadata(id))) known.set(id, version);
  }
  const found = await snapshot.getMany(state.sets.active.filter((id) => !known.has(id)));
  for (const version of found.values()) versions.loaded(version, snapshot.basis.txId);
  const version = (id: ObjectId): MarkedVersion | undefined => known.get(id) ?? found.get(id);
  return assembleParts(environment, { state, prompt, metadata, version, place: { basis: snapshot.basis } }, options);
}

/** Assembles without the database, so that the record says what was shown, whatever becomes of what is on its way (decision 0010). */
function assembleLocally(environment: SessionEnvironment, loaded: LoadedSession, options: AssembleOptions): SessionAssembly {
  const { state, prompt } = loaded;
  const { metadata, versions, aheadOf, ahead, absent } = knownContext(environment, loaded);
  const known = { metadata: (id: ObjectId) => metadata.get(id), version: (id: ObjectId) => versions.get(id) };
  return assembleParts(
    environment,
    { state, prompt, ...known, place: { basis: undefined, ahead, ...defined({ aheadOf, absent }) } },
    options,
  );
}

/** Assembles from the newest that this process knows: all that a sole writer's sessions acknowledge goes to the database in one order, with the record in its place. */
function assembleNewest(environment: SessionEnvironment, { state, prompt }: ViewedSession, options: AssembleOptions): SessionAssembly {
  const { metadata, versions } = environment;
  const known = { metadata: (id: ObjectId) => metadata.get(id), version: (id: ObjectId) => versions.newest(id) };
  return assembleParts(environment, { state, prompt, ...known, place: { basis: undefined } }, options);
}

/** Assembles from the optimistic view: from what this process knows and what the view's basis has; no transaction is waited for (decision 0010). */
export function assembleOptimistically(
  environment: SessionEnvironment,
  { state, prompt }: ViewedSession,
  { heads, versions, basis: txId, ahead, behind, options }: OptimisticContext & { readonly options: AssembleOptions },
): SessionAssembly {
  const basis = txId === undefined ? undefined : { validTime: END_OF_TIME, txId, txTime: undefined };
  const found = { metadata: (id: ObjectId) => heads.get(id)?.metadata, version: (id: ObjectId) => versions.get(id) };
  return assembleParts(environment, { state, prompt, ...found, place: { basis, ahead, ...defined({ behind }) } }, options);
}

/** Whether the content of every active object is at hand without the database. */
const hasContents = ({ versions }: SessionEnvironment, { state }: LoadedSession): boolean =>
  state.sets.active.every((id) => versions.newest(id) !== undefined);

/** From the database, at one basis that includes every step; undefined while it is away. */
async function assembleFromDatabase(
  environment: SessionEnvironment,
  loaded: LoadedSession,
  options: AssembleOptions,
): Promise<SessionAssembly | undefined> {
  const { outbox, store } = environment;
  // A slow database is waited for longer where the context would lack contents without it, as long as it is there.
  const until = performance.now() + (hasContents(environment, loaded) ? 0 : TIME_LIMITS.drainForContents);
  while (outbox.status.outage !== undefined || !(await outbox.drained(loaded.state.id, TIME_LIMITS.drain)))
    if (outbox.status.outage !== undefined || performance.now() >= until) return undefined;
  // Steps that were lost to another writer meanwhile are not in the database as they are here.
  const failure = outbox.failure(loaded.state.id, loaded.lease);
  if (failure !== undefined) throw failure;
  // Another process, or this one before its clock stepped back, may have dated what is loaded later than now.
  store.noteTime(Math.max(loaded.state.lastAt, loaded.promptAt, loaded.position.at));
  try {
    const snapshot = await store.now();
    const metadata = await currentMetadata(environment, snapshot, loaded.state);
    return await assembleAt(environment, snapshot, { ...loaded, metadata, options });
  } catch (error) {
    // No write was under way that would have noticed the outage; a node that answers breaks off where a server that it asks for the rest is away.
    const isAway = isOutage(error) || (error instanceof XtdbError && error.code === 'cut-off');
    if (!outbox.isDurable || !isAway) throw error;
    return undefined;
  }
}

/** How the context of an open session is assembled, from the database or from what this process knows. */
export type AssembleSession = (
  environment: SessionEnvironment,
  loaded: LoadedSession,
  options: AssembleOptions,
) => Promise<SessionAssembly>;

/**
 * Assembles the context of an open session [§4], at one basis that includes every step, resolved once and carried through every read. While the database
 * is away it is assembled from what this process knows.
 */
export async function assembleSession(
  environment: SessionEnvironment,
  loaded: LoadedSession,
  options: AssembleOptions,
): Promise<SessionAssembly> {
  const { timeoutMs } = options;
  const work = assembleFromDatabase(environment, loaded, options);
  const assembled = timeoutMs === undefined ? work : withinLimit(work, timeoutMs, () => undefined);
  return (await assembled) ?? assembleLocally(environment, loaded, options);
}

/** Assembles the context of a session that nobody else writes: from what this process knows, unless the content of an active object is not at hand. */
export async function assembleAsSoleWriter(
  environment: SessionEnvironment,
  loaded: LoadedSession,
  options: AssembleOptions,
): Promise<SessionAssembly> {
  return hasContents(environment, loaded) ? assembleNewest(environment, loaded, options) : assembleSession(environment, loaded, options);
}

/** A session as it stood at a basis. */
export interface PastContext {
  readonly session: SessionId;
  readonly basis: { readonly validTime?: Date; readonly txId?: number };
}

/**
 * Assembles the context of any session as it stood at a basis, from the database alone: the same bytes as then, whatever happened since
 * (decision E7). Undefined when the session did not exist at that basis.
 */
export async function assembleAsOf(
  environment: SessionEnvironment,
  { session, basis }: PastContext,
  options: AssembleOptions,
): Promise<SessionAssembly | undefined> {
  const snapshot = await environment.store.asOf(basis);
  const read = await new ContextReader().read(snapshot, { session, paths: environment.files });
  return read === undefined ? undefined : assemblyOf(environment, { ...read, place: { basis: snapshot.basis } }, options);
}

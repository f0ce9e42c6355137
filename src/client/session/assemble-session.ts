import { renderAround } from '../../assembly/around-tail.js';
import { type Assembly, assemble } from '../../assembly/assemble.js';
import type { AssemblyRecord } from '../../assembly/assembly-record.js';
import { EPOCH_GUIDE } from '../../assembly/epoch/epoch-guide.js';
import { type EpochInput, renderEpoch } from '../../assembly/epoch/epoch-state.js';
import type { GrowingContext, GrowingRecord } from '../../assembly/growing-context.js';
import { type AssemblyInput, activeObject } from '../../assembly/layout.js';
import { metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import { renderMessages } from '../../assembly/render-messages.js';
import { ContextReader } from '../../history/rebuild/context-reader.js';
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
import type { AssembleOptions, SessionAssembly, SessionAssemblyRecord } from './session-assembly.js';
import type { SessionEnvironment } from './session-environment.js';

type MetadataOf = (id: ObjectId) => ObjectMetadata | undefined;

/** Returns the metadata of an index at a snapshot. */
async function metadataAt(
  { files }: SessionEnvironment,
  snapshot: StoreSnapshot,
  index: readonly ObjectId[],
): Promise<MetadataOf> {
  const heads = await snapshot.heads(index);
  const known = new Map<ObjectId, ObjectMetadata | undefined>();
  for (const [id, { document, marks }] of heads) known.set(id as ObjectId, metadataOf(document, marks, files));
  return (id) => known.get(id);
}

/**
 * Returns the objects whose heads must be read at a snapshot. They were written since the last
 * read, were never read, or had a future date that has come. Returns all if the written ones are
 * unknown.
 */
async function outdatedAt(
  { metadata, store }: SessionEnvironment,
  { id, sets: { index } }: SessionState,
  { txId, validTime }: Basis,
) {
  const known = metadata.knownUpto(id);
  if (txId === undefined || known === undefined) return index;
  const isDue = (one: ObjectId): boolean => metadata.isDue(one, validTime);
  if (store.writes.own.cover(known.txId, txId)) return index.filter(isDue);
  const written = await store.writtenBetween(index, known.txId, txId);
  if (written === undefined) return index;
  return index.filter(
    (one, place) => written.has(one) || place >= known.objects || metadata.get(one) === undefined || isDue(one),
  );
}

/**
 * Reads heads at a snapshot. Another clock may have dated a head in the future. Such a head is read
 * again once that time has come, because no new transaction announces it.
 */
async function learnHeads(
  { metadata, store }: SessionEnvironment,
  snapshot: StoreSnapshot,
  ids: readonly ObjectId[],
): Promise<void> {
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

/**
 * Returns the known metadata of a session's objects, updated to a snapshot. If only this client
 * wrote since the last read, reads only heads whose valid time was in the future and has come.
 */
async function currentMetadata(
  environment: SessionEnvironment,
  snapshot: StoreSnapshot,
  state: SessionState,
): Promise<MetadataOf> {
  const { metadata } = environment;
  const { txId } = snapshot.basis;
  const { index } = state.sets;
  await learnHeads(environment, snapshot, await outdatedAt(environment, state, snapshot.basis));
  metadata.setKnown(state.id, { txId, objects: index.length });
  // Another session of this client may have written after the basis. Then only the snapshot has the
  // right versions.
  if (txId !== undefined && !index.every((id) => metadata.isAsOf(id, txId)))
    return metadataAt(environment, snapshot, index);
  // Copy the metadata now, because the session may write while the contents are read.
  const held = new Map(index.map((id) => [id, metadata.get(id)]));
  return (id) => held.get(id);
}

interface Parts {
  readonly state: SessionState;
  readonly prompt: string | null;
  readonly metadata: MetadataOf;
  readonly version: (id: ObjectId) => MarkedVersion | undefined;
  /** The basis of the read, and the objects that are not shown in their version at the basis. */
  readonly place: Pick<SessionAssemblyRecord, 'basis' | 'ahead' | 'aheadOf' | 'behind' | 'absent'>;
}

function assembleParts(environment: SessionEnvironment, parts: Parts, options: AssembleOptions): SessionAssembly {
  const { state, prompt } = parts;
  const { files } = environment;
  const active = state.sets.active.flatMap((id) => {
    const object = parts.version(id);
    const described = object === undefined ? undefined : metadataOf(object.version, object.marks, files);
    return object === undefined || described === undefined ? [] : [activeObject(described, object.version)];
  });
  const pool = state.sets.index.flatMap((id) => parts.metadata(id) ?? []);
  return assemblyOf(environment, { ...parts, input: { systemPrompt: prompt, pool, active } }, options);
}

/** The input of a context, and the basis of its read. */
interface ContextInput extends Pick<Parts, 'state' | 'place'> {
  readonly input: Omit<AssemblyInput, 'options' | 'turns'>;
}

function assemblyOf(
  { strict, shortIds, policy }: SessionEnvironment,
  context: ContextInput,
  options: AssembleOptions,
): SessionAssembly {
  const { state, place: read } = context;
  const chosen = {
    strict: options.strict ?? strict,
    shortIds: options.shortIds ?? shortIds,
    described: true,
    inputs: policy.uses?.inputs ?? true,
    ...(options.guided === true ? { guide: EPOCH_GUIDE } : {}),
  };
  const input: EpochInput = {
    ...context.input,
    // Lazy, because a request that continues an epoch does not need them.
    get turns() {
      return state.turns;
    },
    options: chosen,
    index: state.sets.index,
    chatSince: (step) => state.marksAfter(step),
  };
  const withPlace = <T extends { readonly record: AssemblyRecord }>(
    rendered: T,
  ): T & { readonly record: SessionAssemblyRecord } => ({
    ...rendered,
    record: { ...rendered.record, session: state.id, turn: state.turn, step: state.seq, ...read },
  });
  let text: (Assembly & { readonly record: SessionAssemblyRecord }) | undefined;
  const asText = (): Assembly & { readonly record: SessionAssemblyRecord } => {
    text ??= withPlace(assemble(input));
    return text;
  };
  return {
    // Lazy, because an agent's loop uses another form, and rendering the text would delay its model
    // call.
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

/**
 * Returns whether a version in memory has the content that the snapshot's metadata names, so that
 * it need not be read.
 */
function isSame({ version }: MarkedVersion, metadata: ObjectMetadata | undefined): boolean {
  if (metadata === undefined || metadata.contentHash === null || version.content_hash !== metadata.contentHash)
    return false;
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

/**
 * Assembles without the database. The record names the shown versions, so it stays right if a
 * delivery fails (decision 0010).
 */
function assembleLocally(
  environment: SessionEnvironment,
  loaded: LoadedSession,
  options: AssembleOptions,
): SessionAssembly {
  const { state, prompt } = loaded;
  const { metadata, versions, aheadOf, ahead, absent } = knownContext(environment, loaded);
  const known = { metadata: (id: ObjectId) => metadata.get(id), version: (id: ObjectId) => versions.get(id) };
  return assembleParts(
    environment,
    { state, prompt, ...known, place: { basis: undefined, ahead, ...defined({ aheadOf, absent }) } },
    options,
  );
}

/**
 * Assembles from this process's newest knowledge. The record needs no basis, because a sole
 * writer's steps and records reach the database in the order in which they were made.
 */
function assembleNewest(
  environment: SessionEnvironment,
  { state, prompt }: ViewedSession,
  options: AssembleOptions,
): SessionAssembly {
  const { metadata, versions } = environment;
  const known = { metadata: (id: ObjectId) => metadata.get(id), version: (id: ObjectId) => versions.newest(id) };
  return assembleParts(environment, { state, prompt, ...known, place: { basis: undefined } }, options);
}

/**
 * Assembles from the optimistic view: this process's knowledge and the content at the view's basis.
 * Waits for no transaction (decision 0010).
 */
export function assembleOptimistically(
  environment: SessionEnvironment,
  { state, prompt }: ViewedSession,
  { heads, versions, basis: txId, ahead, behind, options }: OptimisticContext & { readonly options: AssembleOptions },
): SessionAssembly {
  const basis = txId === undefined ? undefined : { validTime: END_OF_TIME, txId, txTime: undefined };
  const found = { metadata: (id: ObjectId) => heads.get(id)?.metadata, version: (id: ObjectId) => versions.get(id) };
  return assembleParts(
    environment,
    { state, prompt, ...found, place: { basis, ahead, ...defined({ behind }) } },
    options,
  );
}

/** Returns whether the content of every active object is in memory. */
const hasContents = ({ versions }: SessionEnvironment, { state }: LoadedSession): boolean =>
  state.sets.active.every((id) => versions.newest(id) !== undefined);

/**
 * Assembles from the database at one basis that includes every step. Returns undefined during an
 * outage.
 */
async function assembleFromDatabase(
  environment: SessionEnvironment,
  loaded: LoadedSession,
  options: AssembleOptions,
): Promise<SessionAssembly | undefined> {
  const { outbox, store } = environment;
  // Wait longer for a slow database if some contents are not in memory.
  const until = performance.now() + (hasContents(environment, loaded) ? 0 : TIME_LIMITS.drainForContents);
  while (outbox.status.outage !== undefined || !(await outbox.drained(loaded.state.id, TIME_LIMITS.drain)))
    if (outbox.status.outage !== undefined || performance.now() >= until) return undefined;
  // Throw if steps were refused, for example after a takeover: the context would lack them.
  environment.recovery.requireWritable(loaded.state.id, loaded.lease, false);
  // Another process, or this one before its clock was set back, may have dated the loaded state in
  // the future.
  store.noteTime(Math.max(loaded.state.lastAt, loaded.promptAt, loaded.position.at));
  try {
    const snapshot = await store.now();
    const metadata = await currentMetadata(environment, snapshot, loaded.state);
    return await assembleAt(environment, snapshot, { ...loaded, metadata, options });
  } catch (error) {
    // No write has noticed this outage yet. A running node may also break off a response, because
    // its own storage is down.
    const isAway = isOutage(error) || (error instanceof XtdbError && error.code === 'cut-off');
    if (!outbox.isDurable || !isAway) throw error;
    return undefined;
  }
}

/**
 * Renders the next context of a session that no other client writes, from its previous context.
 * Reads the database only for contents that this process no longer has in memory. `changed` names
 * the objects whose metadata may have changed since that context. The set is cleared.
 */
export async function renderGrowing(
  environment: SessionEnvironment,
  loaded: LoadedSession,
  { growing, changed }: { readonly growing: GrowingContext; readonly changed: Set<ObjectId> },
): Promise<GrowingRecord & { readonly record: SessionAssemblyRecord }> {
  const { metadata, versions } = environment;
  const { state, prompt } = loaded;
  const { index, active } = state.sets;
  const known = (id: ObjectId): ObjectMetadata | undefined => metadata.get(id);
  const contents = new Map<ObjectId, string | null>();
  const missing = growing.missing({ active, metadata: known });
  for (const id of missing) {
    const found = versions.newest(id);
    if (found !== undefined) contents.set(id, found.version.content);
  }
  if (contents.size < missing.length) {
    const { input } = await assembleSession(environment, loaded, {});
    for (const { metadata: one, content } of input.active) contents.set(one.id, content);
  }
  const content = (id: ObjectId): string | null => contents.get(id) ?? null;
  const rendered = growing.next({
    systemPrompt: prompt,
    index,
    changed: new Set(changed),
    metadata: known,
    chat: state.chat,
    active,
    content,
  });
  changed.clear();
  const place = { session: state.id, turn: state.turn, step: state.seq, basis: undefined };
  return { ...rendered, record: { ...rendered.record, ...place } };
}

/** Assembles the context of an open session, from the database or from this process's knowledge. */
export type AssembleSession = (
  environment: SessionEnvironment,
  loaded: LoadedSession,
  options: AssembleOptions,
) => Promise<SessionAssembly>;

/**
 * Assembles the context of an open session [§4] at one basis that includes every step. The basis is
 * resolved once and used for every read. During an outage, the context comes from this process's
 * knowledge.
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

/**
 * Assembles the context of a session that no other client writes. It uses this process's knowledge,
 * unless the content of an active object is not in memory.
 */
export async function assembleAsSoleWriter(
  environment: SessionEnvironment,
  loaded: LoadedSession,
  options: AssembleOptions,
): Promise<SessionAssembly> {
  return hasContents(environment, loaded)
    ? assembleNewest(environment, loaded, options)
    : assembleSession(environment, loaded, options);
}

/** A session at a basis. */
export interface PastContext {
  readonly session: SessionId;
  readonly basis: { readonly validTime?: Date; readonly txId?: number };
}

/**
 * Assembles the context of any session at a basis, from the database alone. Later changes do not
 * affect its bytes (decision E7). Returns undefined if the session did not exist at that basis.
 */
export async function assembleAsOf(
  environment: SessionEnvironment,
  { session, basis }: PastContext,
  options: AssembleOptions,
): Promise<SessionAssembly | undefined> {
  const snapshot = await environment.store.asOf(basis);
  const read = await new ContextReader().read(snapshot, { session, paths: environment.files });
  return read === undefined
    ? undefined
    : assemblyOf(environment, { ...read, place: { basis: snapshot.basis } }, options);
}

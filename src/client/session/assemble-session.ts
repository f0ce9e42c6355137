import { type AroundTail, renderAround } from '../../assembly/around-tail.js';
import { type Assembly, assemble } from '../../assembly/assemble.js';
import type { AssemblyRecord, FrozenTail, LayoutName } from '../../assembly/assembly-record.js';
import type { AssemblyInput } from '../../assembly/layout.js';
import { metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import { type MessageAssembly, renderMessages } from '../../assembly/render-messages.js';
import type { Delivery, HandedList, ShownAhead } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { withinLimit } from '../../process/within-limit.js';
import type { SessionState } from '../../session/session-state.js';
import { END_OF_TIME } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import { XtdbError, type XtdbErrorCode } from '../../xtdb/errors.js';
import type { MarkedVersion } from '../delivery/session-write.js';
import type { AheadContext } from '../optimistic/ahead-of-database.js';
import { type HeldSession, readHeldSession } from './open-session.js';
import type { SessionEnvironment } from './session-environment.js';

/** The record of one assembly (decision E7): enough to rebuild it from the database alone. */
export interface SessionAssemblyRecord extends AssemblyRecord {
  readonly session: SessionId;
  readonly turn: number;
  /** The last step that it includes. */
  readonly step: number;
  /** Undefined when it was assembled while the database was away: then the step tells what it was made from, once the database has it. */
  readonly basis: Basis | undefined;
  /** There where no transaction was waited for: what it shows in another version than the basis has (decision 0010). */
  readonly ahead?: readonly ShownAhead[];
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
  readonly layout?: LayoutName;
  /** How long the database may take, milliseconds; then the context is assembled from what this process knows. Two seconds for the steps alone if left out. */
  readonly patienceMs?: number;
  /** Assembles from what this process knows, without waiting for its own transactions, where that can be made again later (decision 0010). */
  readonly ahead?: boolean;
}

/** How a context is handed out. */
export interface DeliverOptions extends AssembleOptions {
  /** How it reaches its model. Only with it is the record kept (decision E7), before the context is there. */
  readonly deliver?: Delivery;
  /** Which rendering is handed out and kept the record of; `text` if left out. */
  readonly renderer?: 'text' | 'messages';
}

type MetadataOf = (id: ObjectId) => ObjectMetadata | undefined;

/** What the snapshot itself says of the objects of an index. */
async function metadataAt({ files }: SessionEnvironment, snapshot: StoreSnapshot, index: readonly ObjectId[]): Promise<MetadataOf> {
  const heads = await snapshot.heads(index);
  const known = new Map<ObjectId, ObjectMetadata | undefined>();
  for (const [id, { document, marks }] of heads) known.set(id as ObjectId, metadataOf(document, marks, files));
  return (id) => known.get(id);
}

/** What is known of a session's objects, brought to a snapshot; nothing is read as long as only this client wrote since the last look. */
async function currentMetadata(environment: SessionEnvironment, snapshot: StoreSnapshot, state: SessionState): Promise<MetadataOf> {
  const { cache, store } = environment;
  const { txId } = snapshot.basis;
  const { index } = state.sets;
  const upto = cache.knownUpto(state.id);
  if (txId === undefined || upto === undefined || !store.writes.own.cover(upto, txId)) {
    for (const { document, marks } of (await snapshot.heads(index)).values()) cache.learn(document, marks, txId);
  }
  cache.setKnownUpto(state.id, txId);
  // Another session of this client may have written since the basis was pinned; then only the snapshot itself tells what stood then.
  if (txId !== undefined && !index.every((id) => cache.isAsOf(id, txId))) return metadataAt(environment, snapshot, index);
  return (id) => cache.get(id);
}

interface Parts {
  readonly state: SessionState;
  readonly prompt: string | null;
  readonly metadata: MetadataOf;
  readonly version: (id: ObjectId) => MarkedVersion | undefined;
  readonly basis: Basis | undefined;
  readonly ahead?: readonly ShownAhead[];
}

function assembleParts({ files, strict, shortIds }: SessionEnvironment, parts: Parts, options: AssembleOptions): SessionAssembly {
  const { state, prompt, basis, ahead } = parts;
  const active = state.sets.active.flatMap((id) => {
    const object = parts.version(id);
    const described = object === undefined ? undefined : metadataOf(object.version, object.marks, files);
    return object === undefined || described === undefined ? [] : [{ metadata: described, content: object.version.content }];
  });
  const pool = state.sets.index.flatMap((id) => parts.metadata(id) ?? []);
  const chosen = { strict: options.strict ?? strict, shortIds: options.shortIds ?? shortIds };
  const input: AssemblyInput = { systemPrompt: prompt, pool, turns: state.turns, active, options: chosen };
  const withPlace = <T extends { readonly record: AssemblyRecord }>(rendered: T): T & { readonly record: SessionAssemblyRecord } => ({
    ...rendered,
    record: { ...rendered.record, session: state.id, turn: state.turn, step: state.seq, basis, ...defined({ ahead }) },
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
  };
}

/** Whether a version that this process holds has the content that the snapshot's metadata names: then it need not be read again. */
function isSame({ version }: MarkedVersion, metadata: ObjectMetadata | undefined): boolean {
  if (metadata === undefined || metadata.contentHash === null || version.content_hash !== metadata.contentHash) return false;
  return metadata.type === 'toolcall' || (metadata.state === 'indexed' && version.file_hash === metadata.fileHash);
}

async function assembleAt(
  environment: SessionEnvironment,
  snapshot: StoreSnapshot,
  { state, prompt }: Pick<HeldSession, 'state' | 'prompt'>,
  metadata: MetadataOf,
  options: AssembleOptions,
): Promise<SessionAssembly> {
  const { recent } = environment;
  const known = new Map<ObjectId, MarkedVersion>();
  for (const id of state.sets.active) {
    const version = recent.get(id);
    if (version !== undefined && isSame(version, metadata(id))) known.set(id, version);
  }
  const found = await snapshot.getMany(state.sets.active.filter((id) => !known.has(id)));
  for (const version of found.values()) recent.set(version);
  const version = (id: ObjectId): MarkedVersion | undefined => known.get(id) ?? found.get(id);
  return assembleParts(environment, { state, prompt, metadata, version, basis: snapshot.basis }, options);
}

/** Assembles from what this process knows: the database is away, and an agent's next turn does not wait for it. */
function assembleLocally(environment: SessionEnvironment, { state, prompt }: HeldSession, options: AssembleOptions): SessionAssembly {
  const { cache, recent, outbox } = environment;
  const version = (id: ObjectId): MarkedVersion | undefined => outbox.pending(id) ?? recent.get(id);
  return assembleParts(environment, { state, prompt, metadata: (id) => cache.get(id), version, basis: undefined }, options);
}

/** Assembles from what this process knows and what its basis has: no transaction is waited for (decision 0010). */
export function assembleAhead(
  environment: SessionEnvironment,
  { state, prompt }: HeldSession,
  { heads, versions, basis: txId, ahead }: AheadContext,
  options: AssembleOptions,
): SessionAssembly {
  const basis = txId === undefined ? undefined : { validTime: END_OF_TIME, txId, txTime: undefined };
  const found = { metadata: (id: ObjectId) => heads.get(id)?.metadata, version: (id: ObjectId) => versions.get(id) };
  return assembleParts(environment, { state, prompt, ...found, basis, ahead }, options);
}

/** Whether this process has the content of everything active at hand. */
function knowsActive({ recent, outbox }: SessionEnvironment, { state }: HeldSession): boolean {
  return state.sets.active.every((id) => outbox.pending(id) !== undefined || recent.get(id) !== undefined);
}

/** What a database says, or does not, that is away for now. */
const AWAY: ReadonlySet<XtdbErrorCode> = new Set(['unreachable', 'timeout', 'busy']);

/** How long an assembly waits for the database to have every step, milliseconds. */
const DRAIN_LIMIT_MS = 2_000;

/** From the database, at one basis that includes every step; undefined while it is away. */
async function assembleFromDatabase(
  environment: SessionEnvironment,
  held: HeldSession,
  options: AssembleOptions,
): Promise<SessionAssembly | undefined> {
  const { outbox, store } = environment;
  if (outbox.status.outage !== undefined || !(await outbox.drained(held.state.id, DRAIN_LIMIT_MS))) return undefined;
  // What was lost to another writer while it drained is not in the database as it is held here.
  const failure = outbox.failure(held.state.id);
  if (failure !== undefined) throw failure;
  // Another process, or this one before its clock stepped back, may have dated what is held later than now.
  store.noteTime(Math.max(held.state.lastAt, held.promptAt, held.position.at));
  try {
    const snapshot = await store.now();
    return await assembleAt(environment, snapshot, held, await currentMetadata(environment, snapshot, held.state), options);
  } catch (error) {
    // Nothing was under way that would have told of the outage.
    if (!outbox.isDurable || !(error instanceof XtdbError) || !AWAY.has(error.code)) throw error;
    return undefined;
  }
}

/**
 * Assembles the context of a session that this client holds [§4], at one basis that includes every step, resolved once and carried through every read.
 * While the database is away it is assembled from what this process knows.
 */
export async function assembleSession(
  environment: SessionEnvironment,
  held: HeldSession,
  options: AssembleOptions,
): Promise<SessionAssembly> {
  const { patienceMs } = options;
  if (environment.alone === true && knowsActive(environment, held)) return assembleLocally(environment, held, options);
  const work = assembleFromDatabase(environment, held, options);
  const assembled = patienceMs === undefined ? work : withinLimit(work, patienceMs, () => undefined);
  return (await assembled) ?? assembleLocally(environment, held, options);
}

/**
 * Assembles the context of any session as it stood at a basis, from the database alone: the same bytes as then, whatever happened since
 * (decision E7). Undefined when the session did not exist at that basis.
 */
export async function assembleAsOf(
  environment: SessionEnvironment,
  session: SessionId,
  basis: { readonly validTime?: Date; readonly txId?: number },
  options: AssembleOptions,
): Promise<SessionAssembly | undefined> {
  const snapshot = await environment.store.asOf(basis);
  const held = await readHeldSession(snapshot, session);
  if (held === undefined) return undefined;
  return assembleAt(environment, snapshot, held, await metadataAt(environment, snapshot, held.state.sets.index), options);
}

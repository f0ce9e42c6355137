import { HeadHashes } from '../../objects/head-hashes.js';
import { type SessionId, sessionObjectId, systemPromptObjectId } from '../../objects/ids.js';
import type { FilesystemSource } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import { systemPromptVersion } from '../../objects/versions.js';
import { SessionError } from '../../session/errors.js';
import { applySteps, emptySession, type SessionState } from '../../session/session-state.js';
import type { ForkPoint } from '../../store/head.js';
import { runningChatHead, runningSessionHead } from '../../store/head.js';
import { ownerOf, withoutParent } from '../../store/lineage.js';
import { type ObjectStore, type StoredPut, storedPut } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';

/** Where a session's head stands in the database. */
export interface HeadPosition {
  readonly epoch: number;
  /** The last step that the head includes. */
  readonly upto: number;
  /** Valid time of the head, milliseconds. */
  readonly at: number;
  /** What a fork continues (decision F2); every version of its heads says so. */
  readonly parent?: ForkPoint;
  /** The folders of the clients that have had it open; every version of the session's head says so. */
  readonly roots?: readonly FilesystemSource[];
}

/** The two heads of a session after a state, and where they then stand (decision G4). */
export interface SessionHeads {
  readonly puts: readonly StoredPut[];
  readonly position: HeadPosition;
}

/** What heads are made with in addition to the state. */
export interface HeadOptions {
  /** Where the head stands now; undefined for a session that begins. */
  readonly before?: HeadPosition | undefined;
  /** The moment that the heads hold from, milliseconds; later where the head before is not older. */
  readonly at: number;
  readonly epoch: number;
  /** What a fork continues; by default as its heads before say. */
  readonly parent?: ForkPoint | undefined;
  /** The folders of the clients that have had it open; by default as its heads before say. */
  readonly roots?: readonly FilesystemSource[] | undefined;
  /** Kept from one turn to the next, so that a turn of a long chat costs no more than one of a short chat. */
  readonly hashes?: HeadHashes;
}

/** The versions of chat and session that include every step of a state; their hashes cover the whole logical documents. */
export function headsAt(
  state: SessionState,
  { before, at, epoch, parent = before?.parent, roots = before?.roots, hashes = new HeadHashes(state.id) }: HeadOptions,
): SessionHeads {
  const validTime = new Date(before === undefined ? at : Math.max(at, before.at + 1));
  const fork = defined({ parent });
  const upto = state.seq;
  const puts = [
    { head: runningChatHead(state, hashes, { upto, ...fork }), texts: [], validTime },
    { head: runningSessionHead(state, hashes, { epoch, upto, ...fork, ...defined({ roots }) }), texts: [], validTime },
  ];
  return { puts, position: { epoch, upto, at: validTime.getTime(), ...fork, ...defined({ roots }) } };
}

/** Where a turn begins: the session before and after the step that opens it. */
export interface TurnBoundary {
  readonly before: SessionState;
  readonly after: SessionState;
}

/**
 * The heads to write where a turn ends and the next one begins: the closed turn's versions, unless the head includes all of it already, and those of
 * the turn that begins.
 */
export function turnHeads({ before, after }: TurnBoundary, position: HeadPosition, hashes: HeadHashes): SessionHeads {
  const { epoch } = position;
  const closes = before.seq > position.upto;
  const closed = closes ? headsAt(before, { before: position, at: before.lastAt, epoch, hashes }) : undefined;
  const opened = headsAt(after, { before: closed?.position ?? position, at: after.lastAt, epoch, hashes });
  return { puts: [...(closed?.puts ?? []), ...opened.puts], position: opened.position };
}

/** Where a fork begins. */
export interface ForkOptions {
  /** The new session's id. */
  readonly id: SessionId;
  /** The last step of the parent that the fork shares; its last one when absent, 0 for none. */
  readonly at?: number | undefined;
}

/** A fork that is not written yet. */
interface ForkHeads {
  readonly id: SessionId;
  readonly parent: ForkPoint;
  /** The first versions of session, chat and system prompt, each only if nothing is there by its id. */
  readonly puts: readonly StoredPut[];
}

/** What forking needs of a client. */
interface ForkEnvironment {
  readonly store: ObjectStore;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

function sharedSteps(parent: SessionId, steps: readonly Step[], at: number | undefined): readonly Step[] {
  if (at === undefined) return steps;
  if (!Number.isSafeInteger(at) || at < 0 || at > steps.length) {
    throw new SessionError('sequence-gap', `session ${parent} has the steps 1 to ${steps.length}; it cannot be forked at step ${at}`);
  }
  return steps.slice(0, at);
}

/**
 * The prompt at the end of the shared steps: what was set until the first step that is not shared. Where the parent is a fork itself, that step may be one of
 * its ancestors': the prompt is then the ancestor's, the parent was not there yet.
 */
async function promptAfter(
  store: ObjectStore,
  parent: SessionId,
  { now, next }: { readonly now: StoreSnapshot; readonly next: Step | undefined },
) {
  if (next === undefined) return promptOf(now, parent);
  const { txId } = now.basis;
  const lineage = (await now.lineage(parent)) ?? withoutParent(parent);
  const snapshot = await store.asOf({ ...defined({ txId }), validTime: new Date(next.at - 1) });
  return promptOf(snapshot, ownerOf(lineage, next.seq) ?? parent);
}

async function promptOf(snapshot: StoreSnapshot, session: SessionId): Promise<string | null> {
  return (await snapshot.get(systemPromptObjectId(session)))?.version.content ?? null;
}

/** The heads of a fork. Reads the parent, changes nothing of it. Throws as `forkSession`, apart from `session-exists`. */
export async function forkHeads({ store, clock }: ForkEnvironment, parentId: SessionId, { id, at }: ForkOptions): Promise<ForkHeads> {
  const snapshot = await store.latest();
  const key = sessionObjectId(parentId);
  const [heads, isArriving] = await Promise.all([snapshot.heads([key]), snapshot.documents.isArriving(parentId)]);
  const head = heads.get(key);
  if (head === undefined || isArriving) {
    throw new SessionError('unknown-session', `there is no session ${parentId} in the database; list the sessions to see which there are`);
  }
  const steps = await snapshot.steps(parentId);
  const shared = sharedSteps(parentId, steps, at);
  const parent: ForkPoint = { session: parentId, seq: shared.length };
  const state = applySteps(
    emptySession(id),
    shared.map((step) => ({ ...step, session: id })),
  );
  const { puts, position } = headsAt(state, { at: Math.max(clock(), state.lastAt + 1), epoch: 1, parent, roots: head.marks.roots });
  const prompt = await promptAfter(store, parentId, { now: snapshot, next: steps[shared.length] });
  const all = [...puts, storedPut({ version: systemPromptVersion(id, prompt), validTime: new Date(position.at) })];
  return { id, parent, puts: all.map((put) => ({ ...put, expect: null })) };
}

/** Whether an id now holds exactly the fork that was to be written: then an answer was lost, nothing else. */
async function isWritten({ store }: ForkEnvironment, { id, puts }: ForkHeads): Promise<boolean> {
  const head = (await (await store.latest()).heads([sessionObjectId(id)])).get(sessionObjectId(id));
  const wanted = puts.find((put) => put.head.type === 'session');
  if (head === undefined || wanted === undefined) return false;
  const { object_hash, epoch } = wanted.head;
  const same = head.document.object_hash === object_hash && head.document.epoch === epoch;
  return same && head.validTime.getTime() === wanted.validTime?.getTime();
}

/**
 * Forks a session (decision F2) and answers where the fork begins: a new session with its parent's chat, sets and prompt as they stood after a step. It
 * shares the parent's steps instead of copying them, and its record of roots; its own are numbered after them. It is opened like any other session.
 * @throws {SessionError} unknown-session – there is no such parent; sequence-gap – it lacks the step; session-exists – the new id is taken
 * @throws {XtdbError} when the database is away
 */
export async function forkSession(environment: ForkEnvironment, parentId: SessionId, options: ForkOptions): Promise<ForkPoint> {
  const fork = await forkHeads(environment, parentId, options);
  const { result } = await environment.store.putMany(fork.puts);
  if (!result && !(await isWritten(environment, fork))) {
    throw new SessionError('session-exists', `there is a session ${fork.id} already; choose another id for the fork`);
  }
  return fork.parent;
}

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

/** The position of a session's head in the database. */
export interface HeadPosition {
  /** Rises with each takeover (decision F5). The stored head calls it `epoch`. */
  readonly term: number;
  /** The last step that the head includes. */
  readonly upto: number;
  /** Valid time of the head, in milliseconds. */
  readonly at: number;
  /** The parent of a fork (decision F2). Every version of its heads names it. */
  readonly parent?: ForkPoint;
  /**
   * The folders of all clients that have opened the session. Every version of the session's head
   * lists them.
   */
  readonly roots?: readonly FilesystemSource[];
}

/** The two heads of a session after a state, and their new position (decision G4). */
export interface SessionHeads {
  readonly puts: readonly StoredPut[];
  readonly position: HeadPosition;
}

/** The inputs of heads besides the state. */
export interface HeadOptions {
  /** The current position of the head. Undefined for a new session. */
  readonly before?: HeadPosition | undefined;
  /** Valid time of the heads, in milliseconds. It is raised if the current head is not older. */
  readonly at: number;
  readonly term: number;
  /** The parent of a fork. Default: the parent in its earlier heads. */
  readonly parent?: ForkPoint | undefined;
  /**
   * The folders of all clients that have opened the session. Default: the folders in its earlier
   * heads.
   */
  readonly roots?: readonly FilesystemSource[] | undefined;
  /** Hashes kept across turns, so that a turn costs the same in long and short chats. */
  readonly hashes?: HeadHashes;
}

/**
 * Returns the versions of chat and session that include every step of a state. Their hashes cover
 * the whole logical documents.
 */
export function headsAt(
  state: SessionState,
  { before, at, term, parent = before?.parent, roots = before?.roots, hashes = new HeadHashes(state.id) }: HeadOptions,
): SessionHeads {
  const validTime = new Date(before === undefined ? at : Math.max(at, before.at + 1));
  const fork = defined({ parent });
  const upto = state.seq;
  const puts = [
    { head: runningChatHead(state, hashes, { upto, ...fork }), texts: [], validTime },
    {
      head: runningSessionHead(state, hashes, { epoch: term, upto, ...fork, ...defined({ roots }) }),
      texts: [],
      validTime,
    },
  ];
  return { puts, position: { term, upto, at: validTime.getTime(), ...fork, ...defined({ roots }) } };
}

/** The start of a turn: the session before and after the step that opens it. */
export interface TurnBoundary {
  readonly before: SessionState;
  readonly after: SessionState;
}

/**
 * Returns the heads to write where one turn ends and the next begins. They are the new turn's
 * versions, and the closed turn's unless they are already written.
 */
export function turnHeads({ before, after }: TurnBoundary, position: HeadPosition, hashes: HeadHashes): SessionHeads {
  const { term } = position;
  const closes = before.seq > position.upto;
  const closed = closes ? headsAt(before, { before: position, at: before.lastAt, term, hashes }) : undefined;
  const opened = headsAt(after, { before: closed?.position ?? position, at: after.lastAt, term, hashes });
  return { puts: [...(closed?.puts ?? []), ...opened.puts], position: opened.position };
}

/** Where a fork begins. */
export interface ForkOptions {
  /** The id of the new session. */
  readonly id: SessionId;
  /** The last step shared with the parent. Default: the parent's last step. 0 shares none. */
  readonly at?: number | undefined;
}

/** A fork that is not written yet. */
interface ForkHeads {
  readonly id: SessionId;
  readonly parent: ForkPoint;
  /** The first versions of session, chat and system prompt. Each is put only if its id is free. */
  readonly puts: readonly StoredPut[];
}

/** The parts of a client that a fork needs. */
interface ForkEnvironment {
  readonly store: ObjectStore;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

function sharedSteps(parent: SessionId, steps: readonly Step[], at: number | undefined): readonly Step[] {
  if (at === undefined) return steps;
  if (!Number.isSafeInteger(at) || at < 0 || at > steps.length) {
    throw new SessionError(
      'sequence-gap',
      `session ${parent} has the steps 1 to ${steps.length}; it cannot be forked at step ${at}`,
    );
  }
  return steps.slice(0, at);
}

/**
 * Returns the prompt after the shared steps, as it was just before the first unshared step. If the
 * parent is itself a fork, that step may belong to an ancestor. Then the parent did not exist yet,
 * so the ancestor's prompt is returned.
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

/**
 * Returns the heads of a fork. Reads the parent and does not change it. Throws like `forkSession`,
 * except for `session-exists`.
 */
export async function forkHeads(
  { store, clock }: ForkEnvironment,
  parentId: SessionId,
  { id, at }: ForkOptions,
): Promise<ForkHeads> {
  const snapshot = await store.latest();
  const key = sessionObjectId(parentId);
  const [heads, isArriving] = await Promise.all([snapshot.heads([key]), snapshot.documents.isArriving(parentId)]);
  const head = heads.get(key);
  if (head === undefined || isArriving) {
    throw new SessionError(
      'unknown-session',
      `there is no session ${parentId} in the database; list the sessions to see which there are`,
    );
  }
  const steps = await snapshot.steps(parentId);
  const shared = sharedSteps(parentId, steps, at);
  const parent: ForkPoint = { session: parentId, seq: shared.length };
  const state = applySteps(
    emptySession(id),
    shared.map((step) => ({ ...step, session: id })),
  );
  const { puts, position } = headsAt(state, {
    at: Math.max(clock(), state.lastAt + 1),
    term: 1,
    parent,
    roots: head.marks.roots,
  });
  const prompt = await promptAfter(store, parentId, { now: snapshot, next: steps[shared.length] });
  const all = [...puts, storedPut({ version: systemPromptVersion(id, prompt), validTime: new Date(position.at) })];
  return { id, parent, puts: all.map((put) => ({ ...put, expect: null })) };
}

/** Returns whether an id holds exactly the planned fork. If so, only the response was lost. */
async function isWritten({ store }: ForkEnvironment, { id, puts }: ForkHeads): Promise<boolean> {
  const head = (await (await store.latest()).heads([sessionObjectId(id)])).get(sessionObjectId(id));
  const wanted = puts.find((put) => put.head.type === 'session');
  if (head === undefined || wanted === undefined) return false;
  const { object_hash, epoch } = wanted.head;
  const same = head.document.object_hash === object_hash && head.document.epoch === epoch;
  return same && head.validTime.getTime() === wanted.validTime?.getTime();
}

/**
 * Forks a session (decision F2) and returns where the fork begins. The new session has its parent's
 * roots, and the chat, sets and prompt as they were after step `at`. It shares the steps up to
 * `at`, and numbers its own steps after them. It is opened like any other session.
 * @throws {SessionError} unknown-session – no such parent; sequence-gap – the parent lacks the
 *   step; session-exists – the new id is taken
 * @throws {XtdbError} the database is down
 */
export async function forkSession(
  environment: ForkEnvironment,
  parentId: SessionId,
  options: ForkOptions,
): Promise<ForkPoint> {
  const fork = await forkHeads(environment, parentId, options);
  const { result } = await environment.store.putMany(fork.puts);
  if (!result && !(await isWritten(environment, fork))) {
    throw new SessionError('session-exists', `there is a session ${fork.id} already; choose another id for the fork`);
  }
  return fork.parent;
}

import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import type { ContextClient } from '../client/session/context-client.js';
import { fromNative } from '../filesystem/access/native-path.js';
import type { Backend, SessionLoan } from '../host/backend.js';
import type { AskedCall } from '../host/followed-session.js';
import { type HeldSession, MOST_AT_REST, putAwayResting } from '../host/rest-limit.js';
import type { SessionView } from '../host/session-view.js';
import type { SessionId } from '../objects/ids.js';
import { parseJson } from '../process/owned-file.js';
import type { AgentSandbox, ToolSession } from '../tools/tool.js';
import { counted } from '../values/counted.js';
import { defined } from '../values/defined.js';

/** Hints in a client's `_meta` about the origin of a call. */
export interface CallHints {
  /** The client's name of the conversation. */
  readonly thread?: string;
  /** The client's id of the call (decision B2). */
  readonly callId?: string;
  /** The client's id of the turn (decision B7). */
  readonly turnRef?: string;
  /** The client's own limits for its agent. */
  readonly sandbox?: AgentSandbox;
}

type Meta = Readonly<Record<string, unknown>>;

function textAt(meta: Meta, ...keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const value = meta[key];
    if (typeof value === 'string' && value !== '' && value.length <= 180 && value.isWellFormed()) return value;
  }
  return undefined;
}

const mapSchema = z.record(z.string(), z.unknown());

function mapAt(meta: Meta, key: string): Meta {
  const value = meta[key];
  if (value === undefined) return {};
  return (typeof value === 'string' ? parseJson(value, mapSchema) : mapSchema.safeParse(value).data) ?? {};
}

/**
 * Returns the sandbox that Codex reports, in a turn's metadata or as the state that a server may
 * request.
 */
function codexSandbox(meta: Meta, turn: Meta): AgentSandbox | undefined {
  const policy = mapAt(mapAt(meta, 'codex/sandbox-state-meta'), 'sandboxPolicy');
  const mode = textAt(turn, 'sandbox_mode') ?? textAt(policy, 'type');
  if (mode === undefined) return undefined;
  const { workspaces } = turn;
  const folders = Array.isArray(workspaces) ? workspaces : Object.keys(mapAt(turn, 'workspaces'));
  const named = folders.flatMap((folder: unknown) => (typeof folder === 'string' ? fromNative(folder) : []));
  return { program: 'Codex', mode, workspaces: named.filter((folder) => folder.startsWith('/')).slice(0, 50) };
}

/** Reads the hints of known clients. Codex sends all of them, and most other clients send none. */
export function callHints(meta: Meta): CallHints {
  const codexTurn = mapAt(meta, 'x-codex-turn-metadata');
  const thread = textAt(meta, 'threadId', 'palimpsest/session') ?? textAt(codexTurn, 'thread_id');
  const callId = textAt(meta, 'callId', 'itemId', 'claudecode/toolUseId');
  const turnRef = textAt(codexTurn, 'turn_id') ?? textAt(meta, 'turnId');
  return defined({ thread, callId, turnRef, sandbox: codexSandbox(meta, codexTurn) });
}

/**
 * Returns the session that a call names: the argument `session`, or else the conversation.
 * Characters that a session id cannot have become dashes.
 */
export function sessionOfCall(args: unknown, { thread }: CallHints): string | undefined {
  const argument = typeof args === 'object' && args !== null && 'session' in args ? args.session : undefined;
  if (typeof argument === 'string' && argument !== '') return argument;
  const name = thread?.replace(/[^A-Za-z0-9._:@+-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  return name === '' ? undefined : name;
}

/** The session of one call. */
export interface CallSession {
  readonly session: ToolSession;
  /** The client for the agent's paths, if it is not the connection's own. */
  readonly client?: ContextClient;
  /**
   * Reports the end of the call. Returns at once; surplus idle sessions are closed in the
   * background.
   */
  done(): void;
  /**
   * Releases a session that another process took over, after the call has reported it. The next
   * call with its name takes it back (decision F5).
   */
  lost(): Promise<void>;
}

/** Options for finding a call's session. */
interface HowNamed {
  readonly onProgress: (message: string) => void;
  /**
   * Facts by which the call is found in a session that `palimpsest watch` records. Undefined if the
   * call or the settings name a session.
   */
  readonly asked?: AskedCall;
}

/** Maximum number of followed sessions that stay open to answer calls. */
const MOST_VIEWS = 20;
/** Pause between searches for calls that are in no transcript, milliseconds. */
const ABSENT_MS = 10_000;

/**
 * The sessions of one connection's calls, by name. All calls without a name share one new session.
 * The last used idle sessions stay open. The others are closed once the database has their steps,
 * and the next call with their name opens them again.
 */
export class CallSessions {
  readonly #backend: Backend;
  /** In order of use, the last used one last. */
  readonly #held = new Map<string | undefined, HeldSession>();
  /** Sessions that another process took over, to be taken back by the next call with their name. */
  readonly #lost = new Map<string | undefined, SessionId>();
  /** The sessions that `palimpsest watch` records. This process only answers their calls. */
  readonly #views = new LRUCache<SessionId, Promise<SessionView | undefined>>({
    ...counted(MOST_VIEWS),
    dispose: (view) => void view.then((one) => one?.close()).catch(() => undefined),
  });
  /** Time of the next search in transcripts for a call. */
  #absentUntil = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Returns whether a call with this name begins a new session, which needs no database. */
  isNew(name: string | undefined): boolean {
    return name === undefined && !this.#lost.has(name);
  }

  /**
   * Returns the session of a call, borrowed once for all calls with its name. Rejects with the
   * error of opening.
   */
  async get(name: string | undefined, how: HowNamed): Promise<CallSession> {
    // A conversation and a call's `session` may have the same name and mean different sessions. The
    // space keeps their keys apart, because no name contains a space.
    const key = how.asked !== undefined && name !== undefined ? ` ${name}` : name;
    const isOurs = name !== undefined && (await this.#idOf(key)) === name;
    const view = how.asked === undefined || isOurs ? undefined : await this.#view(how.asked);
    if (view !== undefined) return { ...view, done: () => undefined, lost: async () => undefined };
    const held = this.#held.get(key) ?? { loan: this.#borrow(key, name, how), running: 0, leaving: false };
    this.#held.delete(key);
    this.#held.set(key, held);
    held.running += 1;
    try {
      const { session } = await held.loan;
      return { session, done: () => this.#done(held), lost: () => this.#drop(key, held) };
    } catch (error) {
      if (this.#held.get(key) === held) this.#held.delete(key);
      throw error;
    }
  }

  /** Releases all sessions. */
  async release(): Promise<void> {
    const views = await Promise.allSettled([...this.#views.values()]);
    await Promise.allSettled(views.map((one) => (one.status === 'fulfilled' ? one.value?.close() : undefined)));
    const loans = await Promise.allSettled([...this.#held.values()].map(({ loan }) => loan));
    await Promise.all(loans.map((loan) => (loan.status === 'fulfilled' ? loan.value.release() : undefined)));
  }

  /** Returns the id of a key's open session. Undefined if there is none. */
  async #idOf(key: string | undefined): Promise<string | undefined> {
    return Promise.resolve(this.#held.get(key)?.loan).then(
      (loan) => loan?.session.id,
      () => undefined,
    );
  }

  /** Returns the session in which `palimpsest watch` records the call, as it is now. */
  async #view(asked: AskedCall): Promise<Pick<CallSession, 'session' | 'client'> | undefined> {
    const { thread, callId } = asked;
    if (thread === undefined && (callId === undefined || Date.now() < this.#absentUntil)) return undefined;
    const found = await this.#backend.followed(asked);
    if (found === undefined) {
      if (thread === undefined) this.#absentUntil = Date.now() + ABSENT_MS;
      return undefined;
    }
    const id = found.session;
    const known = this.#views.get(id);
    const opening = known ?? this.#backend.view(found);
    if (known === undefined) this.#views.set(id, opening);
    const view = await opening.catch((error: unknown) => {
      this.#views.delete(id);
      throw error;
    });
    if (view === undefined) this.#views.delete(id);
    else if (known !== undefined) await view.session.reread();
    return view;
  }

  async #borrow(
    key: string | undefined,
    name: string | undefined,
    { onProgress, asked: call }: HowNamed,
  ): Promise<SessionLoan> {
    const lost = this.#lost.get(key);
    // Only the watcher writes a transcript's session, and it may have just begun to. If so, use a
    // new session.
    const isTaken =
      call?.thread !== undefined && lost === undefined && (await this.#backend.followed(call)) !== undefined;
    const asked = isTaken ? undefined : (lost ?? name);
    const loan = await this.#backend.borrow(asked, onProgress, { takeBack: lost !== undefined });
    this.#lost.delete(key);
    return loan;
  }

  async #drop(key: string | undefined, held: HeldSession): Promise<void> {
    const { session, release } = await held.loan;
    if (this.#held.get(key) === held) {
      this.#held.delete(key);
      this.#lost.set(key, session.id);
    }
    await release();
  }

  #done(ended: HeldSession): void {
    ended.running -= 1;
    if (this.#held.size > MOST_AT_REST) putAwayResting(this.#held, { mayLeave: (name) => name !== undefined });
  }
}

import * as z from 'zod';
import type { ContextSession } from '../client/session/context-session.js';
import { fromNative } from '../filesystem/access/native-path.js';
import type { Backend, SessionLoan } from '../host/backend.js';
import { type HeldSession, MOST_AT_REST, putAwayResting } from '../host/rest-limit.js';
import type { SessionId } from '../objects/ids.js';
import { parseJson } from '../process/owned-file.js';
import type { AgentSandbox } from '../tools/tool.js';
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

/** Reads the hints of known clients. Codex sends all of them, most others none. */
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
  readonly session: ContextSession;
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

/** How a call names its session. */
interface HowNamed {
  readonly onProgress: (message: string) => void;
  /**
   * Whether the name is that of the client's conversation. If `palimpsest watch` records it, its
   * calls share a session of their own.
   */
  readonly isThread: boolean;
}

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
    // A conversation may have another session than a call that names it. No name has a space.
    const key = how.isThread && name !== undefined ? ` ${name}` : name;
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
    const loans = await Promise.allSettled([...this.#held.values()].map(({ loan }) => loan));
    await Promise.all(loans.map((loan) => (loan.status === 'fulfilled' ? loan.value.release() : undefined)));
  }

  async #borrow(
    key: string | undefined,
    name: string | undefined,
    { onProgress, isThread }: HowNamed,
  ): Promise<SessionLoan> {
    const lost = this.#lost.get(key);
    // The watcher alone writes the session of a transcript. It records this call from there.
    const isTaken = isThread && name !== undefined && lost === undefined && (await this.#backend.isFollowed(name));
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

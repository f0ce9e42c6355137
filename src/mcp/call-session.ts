import type { Backend, SessionLoan } from '../host/backend.js';
import { defined } from '../values/defined.js';

/** What a client's `_meta` says about where a call belongs. */
export interface CallHints {
  /** The client's own name of the conversation. */
  readonly thread?: string;
  /** The client's id of the call (decision B2). */
  readonly callId?: string;
  /** The client's id of the turn (decision B7). */
  readonly turnRef?: string;
}

type Meta = Readonly<Record<string, unknown>>;

function textAt(meta: Meta, ...keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const value = meta[key];
    if (typeof value === 'string' && value !== '' && value.length <= 180 && value.isWellFormed()) return value;
  }
  return undefined;
}

function mapAt(meta: Meta, key: string): Meta {
  const value = meta[key];
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Meta;
  if (typeof value !== 'string') return {};
  try {
    const parsed: unknown = JSON.parse(value);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? (parsed as Meta) : {};
  } catch {
    return {};
  }
}

/** Reads the hints that clients are known to send; Codex sends all three, most others none. */
export function callHints(meta: Meta): CallHints {
  const codexTurn = mapAt(meta, 'x-codex-turn-metadata');
  const thread = textAt(meta, 'threadId', 'palimpsest/session') ?? textAt(codexTurn, 'thread_id');
  const callId = textAt(meta, 'callId', 'itemId', 'claudecode/toolUseId');
  const turnRef = textAt(codexTurn, 'turn_id') ?? textAt(meta, 'turnId');
  return defined({ thread, callId, turnRef });
}

/** The session that a call names: by its argument `session`, else by the conversation. Characters that a session id cannot have become dashes. */
export function sessionOfCall(args: unknown, { thread }: CallHints): string | undefined {
  const argument = typeof args === 'object' && args !== null && 'session' in args ? args.session : undefined;
  if (typeof argument === 'string' && argument !== '') return argument;
  const name = thread?.replace(/[^A-Za-z0-9._:@+-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  return name === '' ? undefined : name;
}

/** The sessions that the calls of one connection belong to, by name; all calls without a name share one new session. */
export class CallSessions {
  readonly #backend: Backend;
  readonly #loans = new Map<string | undefined, Promise<SessionLoan>>();

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Borrows a session once for all calls that name it. Rejects with what opening it throws. */
  get(name: string | undefined, onProgress: (message: string) => void): Promise<SessionLoan> {
    const known = this.#loans.get(name);
    if (known !== undefined) return known;
    const loan = this.#backend.borrow(name, onProgress);
    this.#loans.set(name, loan);
    loan.catch(() => this.#loans.delete(name));
    return loan;
  }

  /** Gives back a session that was lost to another process, once a call has said so; the next call borrows it anew. */
  async drop(name: string | undefined): Promise<void> {
    const loan = this.#loans.get(name);
    this.#loans.delete(name);
    await (await loan)?.release();
  }

  /** Gives all sessions back. */
  async release(): Promise<void> {
    const loans = await Promise.allSettled(this.#loans.values());
    await Promise.all(loans.map((loan) => (loan.status === 'fulfilled' ? loan.value.release() : undefined)));
  }
}

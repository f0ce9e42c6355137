import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { ForkPlace } from '../client/session/fork-at.js';
import type { SessionSummary } from '../client/session/open-session.js';
import { sessionId, sessionObjectId } from '../objects/ids.js';
import { HarnessError } from './harness-error.js';
import { HarnessSession, type HarnessSettings } from './harness-session.js';

/** How a session is opened, including a takeover from its present owner (decision F5). */
export interface OpenOptions {
  /** Default: a new session. */
  readonly id?: string;
  readonly takeOver?: boolean;
  /** Called with the number of a resumed session's read sources and their total [§3.6]. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** Returns whether a session exists, open here or in the database. */
export async function sessionExists(client: ContextClient, id: string): Promise<boolean> {
  const key = sessionObjectId(sessionId(id));
  if ((await (await client.store.latest()).heads([key])).has(key)) return true;
  return (await client.listSessions()).some((session) => session.id === id);
}

/**
 * The interface for a harness in this process [§5.1]. It opens, resumes, forks and lists sessions.
 * `createContextClient` creates it, and its creator closes it.
 *
 * @example
 * ```ts
 * const session = await harness.openSession({ id: 'fix-cart' });
 * const fork = await harness.forkSession(session.id, { id: 'other-way' });
 * ```
 */
export class HarnessClient {
  /** The underlying client: files, the store and contexts of any time. */
  readonly client: ContextClient;
  readonly #settings: Omit<HarnessSettings, 'delivered'>;
  readonly #release: () => Promise<void>;
  #closing: ReturnType<ContextClient['close']> | undefined;

  /** `release` is called once the client is closed. */
  constructor(
    client: ContextClient,
    settings: Omit<HarnessSettings, 'delivered'> = {},
    release: () => Promise<void> = async () => undefined,
  ) {
    this.client = client;
    this.#settings = settings;
    this.#release = release;
  }

  /**
   * Opens the session with this id, or creates it.
   *
   * @throws {SessionError} `lease-held` – another process has it
   * @throws {XtdbError} – the database does not answer
   * @throws {DocumentError} `invalid-id` – no session can have this id
   */
  async openSession(options: OpenOptions = {}): Promise<HarnessSession> {
    return this.#wrap(await this.client.openSession(options));
  }

  /**
   * Resumes an existing session [§3.6].
   *
   * @throws {HarnessError} `no-such-session` – the session does not exist
   */
  async resumeSession(id: string, options: Omit<OpenOptions, 'id'> = {}): Promise<HarnessSession> {
    if (!(await sessionExists(this.client, id))) {
      throw new HarnessError(
        'no-such-session',
        `there is no session ${JSON.stringify(id)}; list the sessions, or open a new one`,
      );
    }
    return this.openSession({ ...options, id });
  }

  /**
   * Forks a session (decision F2). The new session has the chat and sets after step `at`, or at a
   * moment such as `turn:7`. Default: the last step.
   * @throws {SessionError} – the step is missing, the parent is unreadable, the turn may continue,
   *   or the id is taken.
   * @throws {HistoryError} – the moment does not exist.
   */
  async forkSession(
    parent: string,
    options: { readonly at?: ForkPlace; readonly id?: string } = {},
  ): Promise<HarnessSession> {
    return this.#wrap(await this.client.forkSession(parent, options));
  }

  /** Lists all sessions of the database, the last active one first. */
  listSessions(): Promise<readonly SessionSummary[]> {
    return this.client.listSessions();
  }

  /**
   * Pauses every session, closes the connections and releases the node. Returns the result of
   * `ContextClient.close`. Idempotent.
   */
  close(): ReturnType<ContextClient['close']> {
    this.#closing ??= this.client.close().finally(this.#release);
    return this.#closing;
  }

  #wrap(session: ContextSession): HarnessSession {
    return new HarnessSession(this.client, session, { ...this.#settings, delivered: 'library' });
  }
}

import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { ForkPlace } from '../client/session/fork-at.js';
import type { SessionSummary } from '../client/session/open-session.js';
import { sessionId, sessionObjectId } from '../objects/ids.js';
import { HarnessError } from './harness-error.js';
import { HarnessSession, type HarnessSettings } from './harness-session.js';

/** Options for opening a session. They include a takeover from its current owner (decision F5). */
export interface OpenOptions {
  /** The session's id. Default: a new session. */
  readonly id?: string;
  readonly takeOver?: boolean;
  /**
   * Called while a resumed session reads its sources [§3.6], with the number read and the total.
   */
  readonly onProgress?: (done: number, total: number) => void;
}

/** Returns whether a session exists, either open in this process or in the database. */
export async function sessionExists(client: ContextClient, id: string): Promise<boolean> {
  const key = sessionObjectId(sessionId(id));
  if ((await (await client.store.latest()).heads([key])).has(key)) return true;
  return (await client.listSessions()).some((session) => session.id === id);
}

/**
 * The interface for a harness in this process [§5.1]. It opens, resumes, forks and lists sessions.
 * It is created by `createContextClient`, whose caller must close it.
 *
 * @example
 * ```ts
 * const session = await harness.openSession({ id: 'fix-cart' });
 * const fork = await harness.forkSession(session.id, { id: 'other-way' });
 * ```
 */
export class HarnessClient {
  /**
   * The client behind this interface. It gives access to files, the store, and contexts at any
   * time.
   */
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
   * @throws {SessionError} `lease-held` – another process has the session open
   * @throws {XtdbError} – the database does not answer
   * @throws {DocumentError} `invalid-id` – the id is invalid
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
   * Forks a session (decision F2). `at` is a step or a moment such as `turn:7`; default: the last
   * step. The fork has the chat and sets as they were then.
   *
   * @throws {SessionError} – the step is missing, the parent is unreadable, the turn may
   *   continue, or the id is taken.
   * @throws {HistoryError} – the moment does not exist
   */
  async forkSession(
    parent: string,
    options: { readonly at?: ForkPlace; readonly id?: string } = {},
  ): Promise<HarnessSession> {
    return this.#wrap(await this.client.forkSession(parent, options));
  }

  /** Lists all sessions in the database, the most recently active first. */
  listSessions(): Promise<readonly SessionSummary[]> {
    return this.client.listSessions();
  }

  /**
   * Pauses every session, closes the connections and releases the node. Returns what
   * `ContextClient.close` returns. Idempotent.
   */
  close(): ReturnType<ContextClient['close']> {
    this.#closing ??= this.client.close().finally(this.#release);
    return this.#closing;
  }

  #wrap(session: ContextSession): HarnessSession {
    return new HarnessSession(this.client, session, { ...this.#settings, delivered: 'library' });
  }
}

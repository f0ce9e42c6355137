import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { ForkPlace } from '../client/session/fork-at.js';
import type { SessionSummary } from '../client/session/open-session.js';
import { sessionId, sessionObjectId } from '../objects/ids.js';
import { HarnessError } from './harness-error.js';
import { HarnessSession, type HarnessSettings } from './harness-session.js';

/** Opens a session and takes it over from whoever holds it, where that is asked for (decision F5). */
export interface OpenOptions {
  /** A new session where absent. */
  readonly id?: string;
  readonly takeOver?: boolean;
  /** Called with how many of a resumed session's sources have been read, of how many [§3.6]. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** Whether a session exists, open here or in the database. */
export async function sessionExists(client: ContextClient, id: string): Promise<boolean> {
  const key = sessionObjectId(sessionId(id));
  if ((await (await client.store.latest()).heads([key])).has(key)) return true;
  return (await client.listSessions()).some((session) => session.id === id);
}

/**
 * The way in for a harness that runs in this process [§5.1]: opens, resumes, forks and lists sessions. Made by `createContextClient`; whoever makes it
 * closes it.
 */
export class HarnessClient {
  /** What it works with: files, the store, contexts as of any moment. */
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
   * Opens a session: the existing one of this id, or a new one.
   *
   * @throws {SessionError} `lease-held` – when another process has it
   * @throws {XtdbError} – when the database does not answer
   * @throws {DocumentError} `invalid-id` – for an id that no session can have
   */
  async openSession(options: OpenOptions = {}): Promise<HarnessSession> {
    return this.#wrap(await this.client.openSession(options));
  }

  /**
   * Resumes a session that must exist [§3.6].
   *
   * @throws {HarnessError} `no-such-session` – when it does not
   */
  async resumeSession(id: string, options: Omit<OpenOptions, 'id'> = {}): Promise<HarnessSession> {
    if (!(await sessionExists(this.client, id))) {
      throw new HarnessError('no-such-session', `there is no session ${JSON.stringify(id)}; list the sessions, or open a new one`);
    }
    return this.openSession({ ...options, id });
  }

  /**
   * Forks a session (decision F2): a new one with its chat and sets as they stood after step `at`, or at the moment that it names (`turn:7`), by default the last step.
   *
   * @throws {SessionError} – when the parent has no such step or cannot be read, when the turn may go on, or when the id is taken
   * @throws {HistoryError} – when there is no such moment
   */
  async forkSession(parent: string, options: { readonly at?: ForkPlace; readonly id?: string } = {}): Promise<HarnessSession> {
    return this.#wrap(await this.client.forkSession(parent, options));
  }

  /** All sessions of the database, the one that was worked with last first. */
  listSessions(): Promise<readonly SessionSummary[]> {
    return this.client.listSessions();
  }

  /** Pauses every session, closes the connections and gives the node back; answers what `ContextClient.close` answers. Idempotent. */
  close(): ReturnType<ContextClient['close']> {
    this.#closing ??= this.client.close().finally(this.#release);
    return this.#closing;
  }

  #wrap(session: ContextSession): HarnessSession {
    return new HarnessSession(this.client, session, { ...this.#settings, delivered: 'library' });
  }
}

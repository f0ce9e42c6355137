import type { ContextClient } from '../../client/session/context-client.js';
import type { ContextSession } from '../../client/session/context-session.js';
import type { Backend, SessionLoan } from '../../host/backend.js';
import { type HeldSession, putAwayResting } from '../../host/rest-limit.js';
import { ApiError } from '../../http/problem.js';
import { withinRequest } from '../../http/within-request.js';
import { isLoss } from '../../session/errors.js';
import { defined } from '../../values/defined.js';
import { sessionExists } from '../harness-client.js';
import { HarnessError } from '../harness-error.js';
import { HarnessSession, type HarnessSettings } from '../harness-session.js';
import type { SessionRequest } from './session-schemas.js';

/** A session that a harness has open. */
interface OpenSession extends HeldSession {
  readonly harness: HarnessSession;
  readonly loan: SessionLoan;
  readonly mineShell: boolean;
  lastUsed: number;
}

/**
 * The state of an open session whose memory was freed, for opening it again at the next request.
 */
type PutAwaySession = Pick<OpenSession, 'mineShell' | 'lastUsed'>;

/**
 * The sessions that harnesses have open over HTTP. A session stays open between requests until it
 * is closed or idle for long. If many are idle, only the most recently used stay in memory. A
 * request to a session that is no longer in memory opens it again. The harness does not notice.
 */
export class ApiSessions {
  readonly #backend: Backend;
  readonly #settings: Omit<HarnessSettings, 'delivered' | 'mineShell'>;
  /** In order of use; the session used last is at the end. */
  readonly #open = new Map<string, OpenSession>();
  readonly #putAway = new Map<string, PutAwaySession>();
  /**
   * Sessions that another process took over, as a failed request has shown. Opening one of them
   * takes it back from that process (decision F5).
   */
  readonly #lost = new Set<string>();
  /** Sessions that are being opened. A request for one of them waits. */
  readonly #opening = new Map<string, Promise<HarnessSession>>();

  constructor(backend: Backend, settings: Omit<HarnessSettings, 'delivered' | 'mineShell'>) {
    this.#backend = backend;
    this.#settings = settings;
  }

  /**
   * Returns the client once the database answers.
   *
   * @throws {ApiError} node-starting – the database does not answer within the timeout
   */
  client(): Promise<ContextClient> {
    return withinRequest(this.#backend.ready());
  }

  /**
   * Opens, resumes or forks a session. If it is already open, returns it. With a journal, creating
   * a session does not need the database.
   *
   * @throws {HarnessError} no-such-session – `must_exist` is set and the session does not exist
   * @throws {ApiError} node-starting – the database does not answer within the timeout
   */
  async open({
    id,
    fork,
    must_exist,
    take_over,
    mine_shell: mineShell = false,
  }: SessionRequest<'OpenSession'>): Promise<HarnessSession> {
    if (fork !== undefined) {
      const client = await this.client();
      const { id: forked } = await client.forkSession(fork.parent, { ...defined({ id, at: fork.at }) });
      return this.#join(forked, mineShell);
    }
    if (id === undefined) return withinRequest(this.#join(undefined, mineShell));
    const client = await this.client();
    if (must_exist === true && !(await sessionExists(client, id))) {
      throw new HarnessError(
        'no-such-session',
        `session ${JSON.stringify(id)} does not exist; list the sessions, or leave must_exist out`,
      );
    }
    // The process that had the session notices this at its next step (decision F5).
    if (take_over ?? this.#lost.has(id)) await client.openSession({ id, takeOver: true });
    return this.#reopen(id, mineShell);
  }

  /**
   * Runs work with an open session.
   *
   * @throws {ApiError} session-not-open – the session is not open
   */
  async use<T>(id: string, work: (session: HarnessSession) => Promise<T>): Promise<T> {
    await this.#opening.get(id)?.catch(() => undefined);
    const away = this.#putAway.get(id);
    if (away !== undefined) await withinRequest(this.#opening.get(id) ?? this.#reopen(id, away.mineShell));
    const open = this.#open.get(id);
    if (open === undefined)
      throw new ApiError(
        'session-not-open',
        `the session ${JSON.stringify(id)} is not open; POST /v1/sessions opens it`,
      );
    this.#open.delete(id);
    this.#open.set(id, open);
    open.running += 1;
    try {
      return await work(open.harness);
    } catch (error) {
      if (isLoss(error)) this.#lost.add(id);
      throw error;
    } finally {
      open.running -= 1;
      open.lastUsed = Date.now();
      this.#rest();
    }
  }

  /**
   * Runs work with a session on behalf of a person, while its agent may be using it. If the session
   * is not open here, opens it for the work and pauses it again.
   *
   * @throws {HarnessError} no-such-session
   * @throws {SessionError} `lease-held` – another process, which the error names, has it open;
   *   `other-roots`
   */
  async asPerson<T>(
    id: string,
    work: (open: { readonly client: ContextClient; readonly session: ContextSession }) => Promise<T>,
  ): Promise<T> {
    const client = await this.client();
    if (!(await sessionExists(client, id)))
      throw new HarnessError('no-such-session', `session ${JSON.stringify(id)} does not exist; list the sessions`);
    const borrowing = client.borrowSession({ id, asPerson: true });
    const { session, release } = await withinRequest(borrowing).catch((error: unknown) => {
      // The caller no longer waits, so the session is released as soon as it is borrowed.
      borrowing.then(
        (late) => late.release(),
        () => undefined,
      );
      throw error;
    });
    try {
      return await work({ client, session });
    } finally {
      await release();
    }
  }

  /**
   * Pauses a session [§3.6].
   *
   * @throws {ApiError} session-not-open – the session is not open
   */
  async close(id: string): Promise<void> {
    const { loan } = await this.use(id, async () => this.#open.get(id) as OpenSession);
    this.#open.delete(id);
    await loan.release();
  }

  /**
   * Pauses the sessions that have been idle for this long. Otherwise a harness that vanished would
   * keep them forever.
   */
  async forgetIdle(idleMs: number): Promise<void> {
    const now = Date.now();
    for (const [id, { lastUsed }] of this.#putAway) if (now - lastUsed > idleMs) this.#putAway.delete(id);
    const idle = [...this.#open].filter(([, { running, lastUsed }]) => running === 0 && now - lastUsed > idleMs);
    await Promise.all(idle.map(([id]) => this.close(id)));
  }

  /** Pauses all sessions. */
  async closeAll(): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    this.#putAway.clear();
    await Promise.allSettled(open.map(({ loan }) => loan.release()));
  }

  /** Opens a session by its id. Requests for it wait until it is open. */
  async #reopen(id: string, mineShell: boolean): Promise<HarnessSession> {
    const opening = this.#join(id, mineShell);
    this.#opening.set(id, opening);
    try {
      const harness = await opening;
      this.#lost.delete(id);
      return harness;
    } finally {
      if (this.#opening.get(id) === opening) this.#opening.delete(id);
    }
  }

  #rest(): void {
    putAwayResting(this.#open, {
      onLeave: (id, { mineShell, lastUsed }) => this.#putAway.set(id, { mineShell, lastUsed }),
    });
  }

  /**
   * Borrows a session and keeps it open. An open session is not borrowed again, unless another
   * process took it over.
   */
  async #join(id: string | undefined, mineShell: boolean): Promise<HarnessSession> {
    const client = await this.#backend.usable();
    const loan = await this.#backend.borrow(id);
    const { session } = loan;
    const known = this.#open.get(session.id);
    if (known?.loan.session === session) {
      await loan.release();
      return known.harness;
    }
    const harness = new HarnessSession(client, session, { ...this.#settings, mineShell, delivered: 'http' });
    this.#open.set(session.id, { harness, loan, mineShell, running: 0, leaving: false, lastUsed: Date.now() });
    this.#putAway.delete(session.id);
    await known?.loan.release();
    this.#rest();
    return harness;
  }
}

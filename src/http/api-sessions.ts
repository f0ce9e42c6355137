import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import { sessionExists } from '../harness/harness-client.js';
import { HarnessError } from '../harness/harness-error.js';
import { HarnessSession, type HarnessSettings } from '../harness/harness-session.js';
import type { Backend, SessionLoan } from '../host/backend.js';
import { withinLimit } from '../process/within-limit.js';
import { defined } from '../values/defined.js';
import type { RequestBody } from './api-schemas.js';
import { ApiError } from './problem.js';

/** How long a request waits for the database: less than the minute after which most clients give up. */
const PATIENCE_MS = 50_000;

type OpenRequest = RequestBody<'OpenSession'>;

interface OpenSession {
  readonly harness: HarnessSession;
  readonly loan: SessionLoan;
  /** Requests that are using it. */
  busy: number;
  lastUsed: number;
}

/** Waits for work that may have to wait for the database; throws ApiError `node-starting` when that takes too long. */
function patiently<T>(work: Promise<T>): Promise<T> {
  return withinLimit(work, PATIENCE_MS, () => {
    throw new ApiError('node-starting', 'the database is still starting; ask again in a few seconds');
  });
}

/** The sessions that harnesses have open over HTTP. They stay open between requests until they are closed or nothing was heard of them for long. */
export class ApiSessions {
  readonly #backend: Backend;
  readonly #settings: Omit<HarnessSettings, 'delivered' | 'mineShell'>;
  readonly #open = new Map<string, Promise<OpenSession>>();

  constructor(backend: Backend, settings: Omit<HarnessSettings, 'delivered' | 'mineShell'>) {
    this.#backend = backend;
    this.#settings = settings;
  }

  /** The client, once the database answers; throws ApiError `node-starting` when patience runs out. */
  client(): Promise<ContextClient> {
    return patiently(this.#backend.ready());
  }

  /** Opens, resumes or forks; opening what is open gives the same. A new session needs no database to begin where there is a journal. */
  async open({
    id,
    fork,
    must_exist: mustExist = false,
    take_over: takeOver = false,
    mine_shell: mineShell = false,
  }: OpenRequest): Promise<HarnessSession> {
    if (fork !== undefined) return this.#join((await this.#fork(id, fork)).id, mineShell);
    if (id === undefined) return this.#fresh(mineShell);
    const client = await this.client();
    if (mustExist && !(await sessionExists(client, id))) {
      throw new HarnessError('no-such-session', `there is no session ${JSON.stringify(id)}; list the sessions, or leave must_exist out`);
    }
    await this.#forgetLost(id);
    // Whoever holds it learns so at its next step (decision F5).
    if (takeOver) await client.openSession({ id, takeOver });
    return this.#join(id, mineShell);
  }

  /** Works with an open session; throws ApiError `session-not-open`. */
  async use<T>(id: string, work: (session: HarnessSession) => Promise<T>): Promise<T> {
    const open = await this.#open.get(id);
    if (open === undefined)
      throw new ApiError('session-not-open', `the session ${JSON.stringify(id)} is not open; POST /v1/sessions opens it`);
    open.busy++;
    try {
      return await work(open.harness);
    } finally {
      open.busy--;
      open.lastUsed = Date.now();
    }
  }

  /** Pauses a session [§3.6]. */
  async close(id: string): Promise<void> {
    await this.use(id, async () => undefined);
    const open = await this.#open.get(id);
    this.#open.delete(id);
    await open?.loan.release();
  }

  /** Pauses the sessions that nobody has used for long: a harness that vanished must not hold them for ever. */
  async forgetIdle(idleMs: number): Promise<void> {
    const now = Date.now();
    const open = await Promise.allSettled([...this.#open].map(async ([id, session]) => ({ id, session: await session })));
    const idle = open.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])).filter(({ session }) => session.busy === 0);
    await Promise.all(idle.filter(({ session }) => now - session.lastUsed > idleMs).map(({ id }) => this.close(id)));
  }

  /** Pauses all. */
  async closeAll(): Promise<void> {
    const open = await Promise.allSettled(this.#open.values());
    this.#open.clear();
    await Promise.allSettled(open.map((one) => (one.status === 'fulfilled' ? one.value.loan.release() : undefined)));
  }

  /** What another process took over can be opened again here. */
  async #forgetLost(id: string): Promise<void> {
    const opening = this.#open.get(id);
    const open = await opening?.catch(() => undefined);
    if (open?.loan.session.isLost !== true) return;
    if (this.#open.get(id) === opening) this.#open.delete(id);
    await open.loan.release();
  }

  async #fresh(mineShell: boolean): Promise<HarnessSession> {
    const open = await patiently(this.#borrow(undefined, mineShell));
    this.#open.set(open.harness.id, Promise.resolve(open));
    return open.harness;
  }

  async #fork(id: string | undefined, { parent, at }: NonNullable<OpenRequest['fork']>): Promise<ContextSession> {
    const client = await this.client();
    return client.forkSession(parent, { ...defined({ id, at }) });
  }

  async #join(id: string, mineShell: boolean): Promise<HarnessSession> {
    const known = this.#open.get(id);
    const opening = known ?? this.#borrow(id, mineShell);
    if (known === undefined) {
      this.#open.set(id, opening);
      opening.catch(() => this.#open.delete(id));
    }
    return (await opening).harness;
  }

  async #borrow(id: string | undefined, mineShell: boolean): Promise<OpenSession> {
    const loan = await this.#backend.borrow(id);
    const client = await this.#backend.usable();
    const harness = new HarnessSession(client, loan.session, { ...this.#settings, mineShell, delivered: 'http' });
    return { harness, loan, busy: 0, lastUsed: Date.now() };
  }
}

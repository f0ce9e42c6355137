import type { ContextClient } from '../client/context-client.js';
import { sessionExists } from '../harness/harness-client.js';
import { HarnessError } from '../harness/harness-error.js';
import { HarnessSession, type HarnessSettings } from '../harness/harness-session.js';
import type { Backend, SessionLoan } from '../mcp/backend.js';
import type { RequestBody } from './api-schemas.js';
import { ApiError } from './problem.js';

/** How long a request waits for the database: less than the minute after which most clients give up. */
const PATIENCE_MS = 50_000;

interface OpenSession {
  readonly harness: HarnessSession;
  readonly loan: SessionLoan;
  /** Requests that are using it. */
  busy: number;
  lastUsed: number;
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
  async client(): Promise<ContextClient> {
    const ready = this.#backend.ready();
    ready.catch(() => undefined);
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<never>((_, reject) => {
      const late = new ApiError('node-starting', 'the database is still starting; ask again in a few seconds');
      timer = setTimeout(() => reject(late), PATIENCE_MS);
    });
    try {
      return await Promise.race([ready, patience]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Opens, resumes or forks; opening what is open gives the same. */
  async open(body: RequestBody<'OpenSession'>): Promise<HarnessSession> {
    const client = await this.client();
    const id = await this.#begin(client, body);
    const known = this.#open.get(id);
    const opening = known ?? this.#borrow(client, id, body.mine_shell ?? false);
    if (known === undefined) {
      this.#open.set(id, opening);
      opening.catch(() => this.#open.delete(id));
    }
    return (await opening).harness;
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

  async #borrow(client: ContextClient, id: string, mineShell: boolean): Promise<OpenSession> {
    const loan = await this.#backend.borrow(id);
    const harness = new HarnessSession(client, loan.session, { ...this.#settings, mineShell, delivered: 'http' });
    return { harness, loan, busy: 0, lastUsed: Date.now() };
  }

  /** Makes sure that the client has the session open, and answers its id. */
  async #begin(
    client: ContextClient,
    { id, fork, must_exist: mustExist, take_over: takeOver }: RequestBody<'OpenSession'>,
  ): Promise<string> {
    if (fork !== undefined) {
      const { parent, at } = fork;
      return (await client.forkSession(parent, { ...(id === undefined ? {} : { id }), ...(at === undefined ? {} : { at }) })).id;
    }
    if (id === undefined) return (await client.openSession()).id;
    if (mustExist === true && !(await sessionExists(client, id))) {
      throw new HarnessError('no-such-session', `there is no session ${JSON.stringify(id)}; list the sessions, or leave must_exist out`);
    }
    // Whoever holds it learns so at its next step (decision F5).
    if (takeOver === true) await client.openSession({ id, takeOver });
    return id;
  }
}

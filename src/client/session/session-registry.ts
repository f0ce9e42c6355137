/** The parts of a session that the registry needs. */
interface RegisteredSession {
  /** Whether the session is no longer writable. */
  readonly isLost: boolean;
  close(): Promise<void>;
}

/** A session shared by several users. The last release closes it. */
export interface BorrowedSession<Session> {
  readonly session: Session;
  /** Returns the session. Rejects with the error of closing. Idempotent. */
  release(): Promise<void>;
}

interface Entry<Session> {
  readonly opening: Promise<Session>;
  /** Undefined while the session opens. */
  session?: Session;
  users: number;
  /** Whether it was opened partially, for a use that needs less, such as a person's. */
  readonly isPartial: boolean;
  /** Resolves when the session is closed. */
  readonly ended: Promise<void>;
  readonly end: () => void;
}

/** Returns a promise and its resolver. */
function moment(): readonly [Promise<void>, () => void] {
  let come = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    come = resolve;
  });
  return [promise, come];
}

/**
 * The open sessions of one client. Concurrent requests for an id share one opening. A session lost
 * to another process is dropped and opened again on the next request. A closing session is opened
 * again after it has closed. A partially opened session is shared only with users who also open it
 * partially. Other users open it again after it has closed.
 */
export class SessionRegistry<Id extends string, Session extends RegisteredSession, Options> {
  readonly #openSession: (id: Id, options: Options) => Promise<Session>;
  readonly #isPartial: (options: Options) => boolean;
  readonly #entries = new Map<Id, Entry<Session>>();
  readonly #closing = new Map<Id, Promise<void>>();

  /**
   * `openSession` opens a session that this registry does not hold. `isPartial` returns whether the
   * options open it partially.
   */
  constructor(
    openSession: (id: Id, options: Options) => Promise<Session>,
    isPartial: (options: Options) => boolean = () => false,
  ) {
    this.#openSession = openSession;
    this.#isPartial = isPartial;
  }

  /** Number of open and opening sessions. */
  get size(): number {
    return this.#entries.size;
  }

  has(id: Id): boolean {
    return this.#entries.has(id);
  }

  /**
   * Returns the open session of an id, or opens it. The caller closes it, because it does not count
   * as a borrower. Rejects with the error of opening.
   */
  async open(id: Id, options: Options): Promise<Session> {
    return (await this.#enter(id, options, 0)).opening;
  }

  /**
   * Returns the open session of an id, or opens it, and shares it with all borrowers. The last
   * release closes it. Rejects with the error of opening.
   */
  async borrow(id: Id, options: Options): Promise<BorrowedSession<Session>> {
    const entry = await this.#enter(id, options, 1);
    const session = await entry.opening;
    let released: Promise<void> | undefined;
    const release = async (): Promise<void> => {
      entry.users -= 1;
      if (entry.users === 0) await this.close(id, session);
    };
    return {
      session,
      release: () => {
        released ??= release();
        return released;
      },
    };
  }

  /**
   * Closes a session and removes it, so that the next opening reads it again. Another session with
   * the same id stays open.
   */
  close(id: Id, session: Session): Promise<void> {
    const entry = this.#entries.get(id);
    if (entry?.session !== session) return session.close();
    this.#forget(id, entry);
    const closing = session.close().finally(() => {
      if (this.#closing.get(id) === closing) this.#closing.delete(id);
    });
    this.#closing.set(id, closing);
    return closing;
  }

  /** Returns every open session, after running openings have ended. */
  async all(): Promise<readonly Session[]> {
    const opened = await Promise.allSettled([...this.#entries.values()].map(({ opening }) => opening));
    return opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  }

  /**
   * Closes all sessions, including those that are opening. Rejects with the first failure after all
   * have closed.
   */
  async closeAll(): Promise<void> {
    const closed = await Promise.allSettled([
      ...(await this.all()).map((session) => session.close()),
      ...this.#closing.values(),
    ]);
    const failed = closed.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Returns the entry of an id, and adds `users` to its users. */
  async #enter(id: Id, options: Options, users: number): Promise<Entry<Session>> {
    for (;;) {
      const known = this.#entries.get(id);
      if (known === undefined) return this.#begin(id, options, users);
      const session = await known.opening;
      if (this.#entries.get(id) !== known) continue;
      if (!session.isLost && known.isPartial && !this.#isPartial(options)) {
        await known.ended;
        continue;
      }
      if (!session.isLost) {
        known.users += users;
        return known;
      }
      this.#forget(id, known);
      // Ignore the error: each failed step has reported why the session was lost.
      await session.close().catch(() => undefined);
    }
  }

  #begin(id: Id, options: Options, users: number): Entry<Session> {
    const closing = this.#closing.get(id);
    const open = (): Promise<Session> => this.#openSession(id, options);
    const opening = closing === undefined ? open() : closing.then(open, open);
    const [ended, end] = moment();
    const entry: Entry<Session> = { opening, users, isPartial: this.#isPartial(options), ended, end };
    this.#entries.set(id, entry);
    opening.then(
      (session) => {
        entry.session = session;
      },
      () => this.#forget(id, entry),
    );
    return entry;
  }

  #forget(id: Id, entry: Entry<Session>): void {
    if (this.#entries.get(id) === entry) this.#entries.delete(id);
    entry.end();
  }
}

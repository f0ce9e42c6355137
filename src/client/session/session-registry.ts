/** What the registry needs of a session. */
interface RegisteredSession {
  /** Whether nothing more can be recorded in it. */
  readonly isLost: boolean;
  close(): Promise<void>;
}

/** A session with the users who share it; the last release closes it. */
export interface BorrowedSession<Session> {
  readonly session: Session;
  /** Gives the session back. Rejects with what closing throws. Idempotent. */
  release(): Promise<void>;
}

interface Entry<Session> {
  readonly opening: Promise<Session>;
  /** Undefined while it is being opened. */
  session?: Session;
  users: number;
  /** Whether it was opened for less than others need of it. */
  readonly isPartial: boolean;
  /** Resolves when it is open no longer. */
  readonly ended: Promise<void>;
  readonly end: () => void;
}

/** A promise, and what resolves it. */
function moment(): readonly [Promise<void>, () => void] {
  let come = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    come = resolve;
  });
  return [promise, come];
}

/**
 * The open sessions of one client. A session is opened once, however many ask for its id at the same time; one that was lost to another process is
 * forgotten and opened anew by whoever names it next; one that is being closed is opened again only after that. One that was opened for less than another user needs is
 * shared with its like alone: the other one opens it anew once it is closed.
 */
export class SessionRegistry<Id extends string, Session extends RegisteredSession, Options> {
  readonly #openSession: (id: Id, options: Options) => Promise<Session>;
  readonly #isPartial: (options: Options) => boolean;
  readonly #entries = new Map<Id, Entry<Session>>();
  readonly #closing = new Map<Id, Promise<void>>();

  /** `openSession` opens a session that this registry does not hold; `isPartial` says which options open it for less than all others do. */
  constructor(openSession: (id: Id, options: Options) => Promise<Session>, isPartial: (options: Options) => boolean = () => false) {
    this.#openSession = openSession;
    this.#isPartial = isPartial;
  }

  /** How many sessions are open or being opened. */
  get size(): number {
    return this.#entries.size;
  }

  has(id: Id): boolean {
    return this.#entries.has(id);
  }

  /** The open session of an id, opened if need be. Whoever opens it closes it; it counts no users. Rejects with what opening throws. */
  async open(id: Id, options: Options): Promise<Session> {
    return (await this.#enter(id, options, 0)).opening;
  }

  /** The open session of an id, opened if need be, shared with all who borrow it: the last one to release it closes it. Rejects with what opening throws. */
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

  /** Closes a session and forgets it, so that opening its id again reads it afresh. Another session of the same id stays open. */
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

  /** Every session that could be opened, once those that are being opened are. */
  async all(): Promise<readonly Session[]> {
    const opened = await Promise.allSettled([...this.#entries.values()].map(({ opening }) => opening));
    return opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  }

  /** Closes every session, those too that are being opened. Rejects with the first failure once all are closed. */
  async closeAll(): Promise<void> {
    const closed = await Promise.allSettled([...(await this.all()).map((session) => session.close()), ...this.#closing.values()]);
    const failed = closed.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** The entry of an id, with so many users more. */
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
      // Each of its steps has reported why it was lost.
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

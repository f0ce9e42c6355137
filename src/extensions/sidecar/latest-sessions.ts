/**
 * Maximum number of sessions with cached data in a harness's process. A process with many
 * sub-agents has hundreds of sessions, but only a few are active at a time.
 */
const MOST_SESSIONS = 16;

/** A cache for the sessions that a harness used last. Evicted data must be computable again. */
export class LatestSessions<T> {
  /** In order of use; the session used last is at the end. */
  readonly #kept = new Map<string, T>();
  readonly #isHeld: (session: string) => boolean;

  /** Sessions for which `isHeld` returns true are not evicted. */
  constructor(isHeld: (session: string) => boolean = () => false) {
    this.#isHeld = isHeld;
  }

  get(session: string): T | undefined {
    const kept = this.#kept.get(session);
    if (kept !== undefined) this.#touch(session, kept);
    return kept;
  }

  /** Stores the data of a session. It may evict another session's data. */
  set(session: string, kept: T): void {
    this.#touch(session, kept);
    for (const oldest of [...this.#kept.keys()].slice(0, -1)) {
      if (this.#kept.size <= MOST_SESSIONS) return;
      if (!this.#isHeld(oldest)) this.#kept.delete(oldest);
    }
  }

  delete(session: string): void {
    this.#kept.delete(session);
  }

  clear(): void {
    this.#kept.clear();
  }

  #touch(session: string, kept: T): void {
    this.#kept.delete(session);
    this.#kept.set(session, kept);
  }
}

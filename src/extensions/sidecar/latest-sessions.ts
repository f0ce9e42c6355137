/**
 * Maximum number of sessions with cached data per harness process. A process with many subagents
 * has hundreds of sessions but works with few at a time.
 */
const MOST_SESSIONS = 16;

/** A cache for a harness's last used sessions. Evicted data is computed again. */
export class LatestSessions<T> {
  /** In order of use, the last used one last. */
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

  /** Stores data of a session, and may evict another session's. */
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

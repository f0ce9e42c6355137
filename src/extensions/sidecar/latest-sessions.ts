/** Of how many sessions a harness's process keeps what can be made again: one with many subagents has hundreds, and works with few at a time. */
const MOST_SESSIONS = 16;

/** What is kept of the sessions that a harness worked with last. It only saves work: what left is made again. */
export class LatestSessions<T> {
  /** The one that was used last comes last. */
  readonly #kept = new Map<string, T>();
  readonly #isHeld: (session: string) => boolean;

  /** `isHeld`: of these nothing may leave yet. */
  constructor(isHeld: (session: string) => boolean = () => false) {
    this.#isHeld = isHeld;
  }

  get(session: string): T | undefined {
    const kept = this.#kept.get(session);
    if (kept !== undefined) this.#touch(session, kept);
    return kept;
  }

  /** Keeps something of a session; that of another one may leave for it. */
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

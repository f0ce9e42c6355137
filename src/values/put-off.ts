/**
 * Maximum delay in milliseconds. Meanwhile the process sleeps, so that the client gets the CPU to
 * read the response.
 */
const LATEST_MS = 1;

/**
 * Deferred work, in order, at most a millisecond late. Readers of its result call `now` first. The
 * work must not throw.
 */
export class PutOff {
  #waiting: (() => void)[] = [];
  #running = false;

  /** Appends work to the queue. */
  add(work: () => void): void {
    if (this.#waiting.length === 0) setTimeout(() => this.now(), LATEST_MS);
    this.#waiting.push(work);
  }

  /** Runs the queued work. Work that calls `now` itself finds all earlier work done. */
  now(): void {
    if (this.#running || this.#waiting.length === 0) return;
    this.#running = true;
    for (const work of this.#waiting) work();
    this.#waiting = [];
    this.#running = false;
  }
}

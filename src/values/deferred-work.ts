/**
 * Maximum delay in milliseconds. During the delay the process sleeps, so that the client gets the
 * CPU to read the response.
 */
const LATEST_MS = 1;

/**
 * A queue of work that runs in order, after at most a millisecond. Code that reads the work's
 * result calls `flush` first. The work must not throw.
 */
export class DeferredWork {
  #waiting: (() => void)[] = [];
  #running = false;

  /** Appends work to the queue. */
  add(work: () => void): void {
    if (this.#waiting.length === 0) setTimeout(() => this.flush(), LATEST_MS);
    this.#waiting.push(work);
  }

  /** Runs the queued work. Work that calls `flush` itself finds all earlier work done. */
  flush(): void {
    if (this.#running || this.#waiting.length === 0) return;
    this.#running = true;
    for (const work of this.#waiting) work();
    this.#waiting = [];
    this.#running = false;
  }
}

/** How long work waits at most, milliseconds: in that time the process sleeps, and whoever reads the answer that was just written has its core. */
const LATEST_MS = 1;

/**
 * Work that nobody waits for until its result is asked for: it is done then, in its order, at the latest a millisecond later. Whoever asks calls `now` first. The work must not throw.
 */
export class PutOff {
  #waiting: (() => void)[] = [];
  #running = false;

  /** Puts work behind what waits. */
  add(work: () => void): void {
    if (this.#waiting.length === 0) setTimeout(() => this.now(), LATEST_MS);
    this.#waiting.push(work);
  }

  /** Does what waits. Work that asks itself finds what was put off before it done. */
  now(): void {
    if (this.#running || this.#waiting.length === 0) return;
    this.#running = true;
    for (const work of this.#waiting) work();
    this.#waiting = [];
    this.#running = false;
  }
}

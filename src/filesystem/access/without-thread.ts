import { mountsAreLocal } from './local-mounts.js';

/**
 * Maximum time per turn of the event loop, milliseconds. Further access uses threads, so that the
 * process's other work gets its turn.
 */
const TURN_MS = 5;
/**
 * Milliseconds that no healthy local disk takes. The disk may be starting up or failing, or another
 * program intercepts opening files.
 */
const SLOW_MS = 50;
/** How long all access uses threads after one slow answer, milliseconds. */
const THREADS_MS = 60_000;

/**
 * Decides whether files may be accessed on the event loop's thread. That is faster than the thread
 * pool unless the access blocks.
 */
export class WithoutThread {
  readonly #areLocal: () => boolean;
  readonly #now: () => number;
  #turnBegan: number | undefined;
  #threadsUntil = Number.NEGATIVE_INFINITY;

  constructor(areLocal = mountsAreLocal, now = () => performance.now()) {
    this.#areLocal = areLocal;
    this.#now = now;
  }

  /**
   * Whether the next access needs no thread: all mounts are local, none was slow recently, and this
   * turn of the event loop has time left.
   */
  get may(): boolean {
    const now = this.#now();
    if (now < this.#threadsUntil || !this.#areLocal()) return false;
    if (this.#turnBegan === undefined) {
      this.#turnBegan = now;
      setImmediate(() => {
        this.#turnBegan = undefined;
      });
    }
    return now - this.#turnBegan < TURN_MS;
  }

  /**
   * Runs `work` synchronously and records whether it was slow. Returns its result and rethrows its
   * errors.
   */
  do<T>(work: () => T): T {
    const began = this.#now();
    try {
      return work();
    } finally {
      const ended = this.#now();
      if (ended - began > SLOW_MS) this.#threadsUntil = ended + THREADS_MS;
    }
  }
}

/** The instance of this process. */
export const withoutThread = new WithoutThread();

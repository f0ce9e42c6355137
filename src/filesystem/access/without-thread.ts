import { mountsAreLocal } from './local-mounts.js';

/** How long such work may take of one turn of the event loop, milliseconds: then it goes on in threads, so that everything else of the process has its turn. */
const TURN_MS = 5;
/** Longer than a disk of this machine takes that answers at once, milliseconds: it may be starting up or failing, or another program be asked before a file is opened. */
const SLOW_MS = 50;
/** How long everything is done in threads after one such answer. */
const THREADS_MS = 60_000;

/** What decides whether files may be asked for on the thread of the event loop, which is faster than a thread of the pool as long as nobody waits for the answer. */
export class WithoutThread {
  readonly #areLocal: () => boolean;
  readonly #now: () => number;
  #turnBegan: number | undefined;
  #threadsUntil = Number.NEGATIVE_INFINITY;

  constructor(areLocal = mountsAreLocal, now = () => performance.now()) {
    this.#areLocal = areLocal;
    this.#now = now;
  }

  /** Whether the next access needs no thread: every mount is of this machine, none was slow of late, and this turn of the event loop has not been used up by others. */
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

  /** Does it here and now, and notes whether it was slow. Gives and throws what the work does. */
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

/** That of this process. */
export const withoutThread = new WithoutThread();

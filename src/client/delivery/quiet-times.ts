import { withinLimit } from '../../process/within-limit.js';

/** How long a question may take to come that was announced, and how long a delivery is put off at most, milliseconds. */
const SOON_MS = 20;
const MOST_MS = 100;

/**
 * When there is time for what nobody waits for: what is in the journal goes to the database after the context that an agent's model waits for, not before it
 * (decision 0010). Whoever waits for the database says so, and nothing is put off.
 */
export class QuietTimes {
  #until = 0;
  #waiting = 0;
  #hurried = 0;
  #wake: (() => void) | undefined;
  #woken: Promise<void> = Promise.resolve();

  constructor() {
    this.#renew();
  }

  /** A model waits from now on; the answer says that it has what it waits for. Idempotent. */
  begin(): () => void {
    this.#waiting += 1;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#waiting -= 1;
      this.#until = 0;
      this.#rouse();
    };
  }

  /** A model will wait soon. */
  soon(): void {
    this.#until = performance.now() + SOON_MS;
  }

  /** Puts nothing off as long as some work waits for what is delivered. */
  async hurry<T>(work: () => Promise<T>): Promise<T> {
    this.#hurried += 1;
    this.#rouse();
    try {
      return await work();
    } finally {
      this.#hurried -= 1;
    }
  }

  /** Resolves when nobody waits or will soon, or after a tenth of a second. */
  async quiet(): Promise<void> {
    const end = performance.now() + MOST_MS;
    for (;;) {
      const now = performance.now();
      const rest = Math.min(end - now, this.#waiting > 0 ? MOST_MS : this.#until - now);
      if (this.#hurried > 0 || rest <= 0) return;
      await withinLimit(this.#woken, rest, () => undefined, { keepsAlive: true });
    }
  }

  #rouse(): void {
    this.#wake?.();
    this.#renew();
  }

  #renew(): void {
    this.#woken = new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

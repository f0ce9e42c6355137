import { withinLimit } from '../../process/within-limit.js';
import { TIME_LIMITS } from '../time-limits.js';

/**
 * Delays the delivery of writes while a model waits for its context, so that the context goes first
 * (decision 0010). The gate opens as soon as a caller waits for the database.
 */
export class DeliveryGate {
  #announcedUntil = 0;
  #models = 0;
  #urgent = 0;
  #wake: (() => void) | undefined;
  #changed: Promise<void> = Promise.resolve();

  constructor() {
    this.#renew();
  }

  /**
   * Closes the gate while a model waits. Call the returned function once the model has its context.
   * That function is idempotent.
   */
  close(): () => void {
    this.#models += 1;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#models -= 1;
      this.#announcedUntil = 0;
      this.#notify();
    };
  }

  /** Announces a model that will wait soon. */
  announce(): void {
    this.#announcedUntil = performance.now() + TIME_LIMITS.announcedModel;
  }

  /** Keeps the gate open while `work` runs, because it waits for the database. */
  async openFor<T>(work: () => Promise<T>): Promise<T> {
    this.#urgent += 1;
    this.#notify();
    try {
      return await work();
    } finally {
      this.#urgent -= 1;
    }
  }

  /**
   * Resolves when no model waits or is announced, when a caller waits for the database, or after
   * 100 ms.
   */
  async passed(): Promise<void> {
    const end = performance.now() + TIME_LIMITS.gate;
    for (;;) {
      const now = performance.now();
      const rest = Math.min(end - now, this.#models > 0 ? TIME_LIMITS.gate : this.#announcedUntil - now);
      if (this.#urgent > 0 || rest <= 0) return;
      await withinLimit(this.#changed, { ms: rest, keepsAlive: true }, () => undefined);
    }
  }

  #notify(): void {
    this.#wake?.();
    this.#renew();
  }

  #renew(): void {
    this.#changed = new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

interface Waiter {
  readonly most: number;
  readonly resolve: () => void;
}

/** Counts writes in delivery, and delays producers until few enough are left. */
export class Backpressure {
  #waiters: readonly Waiter[] = [];
  #count = 0;

  /** Number of writes in delivery. */
  get count(): number {
    return this.#count;
  }

  /** Counts one more write. */
  enter(): void {
    this.#count += 1;
  }

  /** Counts one write less. */
  leave(): void {
    this.#count -= 1;
    if (this.#waiters.length === 0) return;
    const ready = this.#waiters.filter(({ most }) => this.#count <= most);
    this.#waiters = this.#waiters.filter(({ most }) => this.#count > most);
    for (const { resolve } of ready) resolve();
  }

  /** Resolves once at most `most` writes are in delivery. */
  atMost(most: number): Promise<void> {
    if (this.#count <= most) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters = [...this.#waiters, { most, resolve }];
    });
  }
}

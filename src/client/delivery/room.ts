interface Waiter {
  readonly most: number;
  readonly go: () => void;
}

/** Lets whoever fills a queue wait until it has become short enough. */
export class Room {
  #waiters: readonly Waiter[] = [];

  /** Resolves once at most `most` are waiting; `waiting` of them are now. */
  of(most: number, waiting: number): Promise<void> {
    if (waiting <= most) return Promise.resolve();
    return new Promise((go) => {
      this.#waiters = [...this.#waiters, { most, go }];
    });
  }

  /** Says how many are waiting now. */
  freed(waiting: number): void {
    if (this.#waiters.length === 0) return;
    const free = this.#waiters.filter(({ most }) => waiting <= most);
    this.#waiters = this.#waiters.filter(({ most }) => waiting > most);
    for (const { go } of free) go();
  }
}

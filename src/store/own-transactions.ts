import { LRUCache } from 'lru-cache';

/** Which transactions a client made itself, so that it can tell whether anybody else wrote in between. Forgets the oldest; then the answer is no. */
export class OwnTransactions {
  readonly #ids = new LRUCache<number, true>({ max: 50_000 });
  readonly #sent = new LRUCache<number, true>({ max: 50_000 });

  add(txId: number): void {
    this.#ids.set(txId, true);
  }

  /** Notes a transaction that is in the log; what became of it is not known yet. */
  sent(txId: number): void {
    this.#sent.set(txId, true);
  }

  /** As `cover`, with those whose outcome is not known yet, and those that came to nothing. */
  coverSent(from: number, to: number): boolean {
    return every(from, to, (id) => this.#ids.has(id) || this.#sent.has(id));
  }

  /** Whether every transaction after `from` up to `to` is one of ours. Ids with gaps, as other logs than XTDB's own have, answer no. */
  cover(from: number, to: number): boolean {
    return every(from, to, (id) => this.#ids.has(id));
  }
}

/** Whether something holds of every number after `from` up to `to`. */
function every(from: number, to: number, holds: (id: number) => boolean): boolean {
  for (let id = from + 1; id <= to; id++) if (!holds(id)) return false;
  return true;
}

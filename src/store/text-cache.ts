import { LRUCache } from 'lru-cache';

/**
 * Texts by their hash, bounded by size: immutable, so a hit is never stale. Also knows which text parts the database is known to hold, so that the
 * same text is not sent twice.
 */
export class TextCache {
  readonly #texts: LRUCache<string, string>;
  readonly #stored: LRUCache<string, true>;

  /** `maxUnits` bounds the sum of the texts' lengths in UTF-16 units. */
  constructor(maxUnits = 32 * 1_048_576) {
    this.#texts = new LRUCache({ maxSize: maxUnits, sizeCalculation: (text) => text.length + 64 });
    this.#stored = new LRUCache({ max: 100_000 });
  }

  get(hash: string): string | undefined {
    return this.#texts.get(hash);
  }

  set(hash: string, text: string): void {
    this.#texts.set(hash, text);
  }

  /** Whether a part is known to be committed. */
  isStored(partId: string): boolean {
    return this.#stored.has(partId);
  }

  /** Remembers that a part is committed. */
  markStored(partId: string): void {
    this.#stored.set(partId, true);
  }
}

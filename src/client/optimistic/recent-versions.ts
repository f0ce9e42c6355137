import { LRUCache } from 'lru-cache';
import type { ObjectId } from '../../objects/ids.js';
import type { MarkedVersion } from '../delivery/session-write.js';

/** The latest known versions of objects that were written or loaded lately, bounded by size: what can be served while the database is away. */
export class RecentVersions {
  readonly #versions: LRUCache<ObjectId, MarkedVersion>;

  /** `maxUnits` bounds the sum of the contents' lengths in UTF-16 units. */
  constructor(maxUnits = 32 * 1_048_576) {
    this.#versions = new LRUCache({ maxSize: maxUnits, sizeCalculation: ({ version }) => (version.content?.length ?? 0) + 256 });
  }

  get(id: ObjectId): MarkedVersion | undefined {
    return this.#versions.get(id);
  }

  set({ version, marks }: MarkedVersion): void {
    this.#versions.set(version['xt/id'], { version, marks });
  }
}

import { DocumentError, quoted } from './errors.js';
import type { ObjectId } from './ids.js';

/**
 * The sets of a session [§3.1], each in insertion order. `metadata_pool` is the index less what was demoted; nothing demotes today [§3.2],
 * so the pool is the index (decision G4) and is not held twice.
 */
export interface SessionSets {
  readonly index: readonly ObjectId[];
  readonly active: readonly ObjectId[];
  readonly pinned: readonly ObjectId[];
}

/** What one step does to the sets; absent members change nothing. Removals are applied before additions. */
export interface SetChanges {
  /** Ids that enter index and pool. */
  readonly index?: readonly ObjectId[];
  readonly activate?: readonly ObjectId[];
  readonly deactivate?: readonly ObjectId[];
  readonly pin?: readonly ObjectId[];
  readonly unpin?: readonly ObjectId[];
}

/** The sets of a session whose index is empty. */
export const EMPTY_SETS: SessionSets = Object.freeze({ index: [], active: [], pinned: [] });

/**
 * Folds many steps' changes into sets in time linear in the changes; removals come before additions (decision D1). Mutable on purpose and
 * never shared: `sets()` gives immutable copies.
 * @throws {DocumentError} for what would become active or pinned outside the index
 */
export class SetsFold {
  readonly #index: Set<ObjectId>;
  readonly #active: Set<ObjectId>;
  readonly #pinned: Set<ObjectId>;

  constructor(start: SessionSets = EMPTY_SETS) {
    this.#index = new Set(start.index);
    this.#active = new Set(start.active);
    this.#pinned = new Set(start.pinned);
  }

  apply(changes: SetChanges): this {
    for (const id of changes.index ?? []) this.#index.add(id);
    for (const id of changes.deactivate ?? []) this.#active.delete(id);
    for (const id of changes.unpin ?? []) this.#pinned.delete(id);
    for (const id of changes.activate ?? []) this.#active.add(this.#known(id));
    for (const id of changes.pin ?? []) this.#pinned.add(this.#known(id));
    return this;
  }

  sets(): SessionSets {
    return { index: [...this.#index], active: [...this.#active], pinned: [...this.#pinned] };
  }

  #known(id: ObjectId): ObjectId {
    if (this.#index.has(id)) return id;
    throw new DocumentError('invalid-value', `${quoted(id)} would become active or pinned without being in the session index`);
  }
}

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

/** The sets of a session that has met nothing yet. */
export const EMPTY_SETS: SessionSets = Object.freeze({ index: [], active: [], pinned: [] });

function changed(
  set: readonly ObjectId[],
  remove: readonly ObjectId[] | undefined,
  add: readonly ObjectId[] | undefined,
): readonly ObjectId[] {
  const kept = remove === undefined || remove.length === 0 ? set : set.filter((id) => !remove.includes(id));
  if (add === undefined || add.length === 0) return kept;
  const known = new Set(kept);
  const fresh = [...new Set(add)].filter((id) => !known.has(id));
  return fresh.length === 0 ? kept : [...kept, ...fresh];
}

/**
 * Applies a step's changes and checks the invariants (decision D1): active ⊆ pool, pinned ⊆ pool. The input is not touched.
 * Throws DocumentError when the changes would break an invariant: they were not made for these sets.
 */
export function applyChanges(sets: SessionSets, changes: SetChanges): SessionSets {
  const index = changed(sets.index, undefined, changes.index);
  const active = changed(sets.active, changes.deactivate, changes.activate);
  const pinned = changed(sets.pinned, changes.unpin, changes.pin);
  if (changes.activate !== undefined || changes.pin !== undefined) {
    const known = new Set(index);
    for (const id of [...(changes.activate ?? []), ...(changes.pin ?? [])]) {
      if (!known.has(id))
        throw new DocumentError('invalid-value', `${quoted(id)} would become active or pinned without being in the session index`);
    }
  }
  return { index, active, pinned };
}

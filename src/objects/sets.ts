import { DocumentError, quoted } from './errors.js';
import type { ObjectId } from './ids.js';

/**
 * The sets of a session [§3.1], each in insertion order. `metadata_pool` is the index minus demoted
 * ids. Nothing demotes today [§3.2], so the pool equals the index (decision G4) and is not stored
 * twice.
 */
export interface SessionSets {
  readonly index: readonly ObjectId[];
  readonly active: readonly ObjectId[];
  readonly pinned: readonly ObjectId[];
}

/**
 * The changes of one step to the sets. Absent members change nothing. Removals apply before
 * additions.
 */
export interface SetChanges {
  /** Ids added to index and pool. */
  readonly index?: readonly ObjectId[];
  readonly activate?: readonly ObjectId[];
  readonly deactivate?: readonly ObjectId[];
  readonly pin?: readonly ObjectId[];
  readonly unpin?: readonly ObjectId[];
}

/** The sets of a session whose index is empty. */
export const EMPTY_SETS: SessionSets = Object.freeze({ index: [], active: [], pinned: [] });

/**
 * Returns the sets after the changes of many steps, in time linear in the changes. Removals apply
 * before additions (decision D1).
 *
 * @throws {DocumentError} if an id outside the index would become active or pinned
 */
export function foldSets(start: SessionSets, changes: Iterable<SetChanges>): SessionSets {
  const [index, active, pinned] = [new Set(start.index), new Set(start.active), new Set(start.pinned)];
  const known = (id: ObjectId): ObjectId => {
    if (index.has(id)) return id;
    throw new DocumentError(
      'invalid-value',
      `${quoted(id)} would become active or pinned without being in the session index`,
    );
  };
  for (const change of changes) {
    for (const id of change.index ?? []) index.add(id);
    for (const id of change.deactivate ?? []) active.delete(id);
    for (const id of change.unpin ?? []) pinned.delete(id);
    for (const id of change.activate ?? []) active.add(known(id));
    for (const id of change.pin ?? []) pinned.add(known(id));
  }
  return { index: [...index], active: [...active], pinned: [...pinned] };
}

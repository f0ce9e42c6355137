import type { ObjectId } from '../../src/objects/ids.js';
import type { SessionState } from '../../src/session/session-state.js';

/** Returns the tool results that became fresh in each turn, oldest first (decision D4). */
export function windowOf(state: SessionState): readonly (readonly ObjectId[])[] {
  return Array.from({ length: state.turn }, (_, i) => state.newestResults(i + 1, Number.MAX_SAFE_INTEGER).toReversed());
}

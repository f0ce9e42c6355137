import type { ObjectId } from '../objects/ids.js';
import type { SessionState } from './session-state.js';

/** The sliding window of §4.3: how many tool results of each turn may stay active, and of how many turns, the running one included. */
export interface WindowPolicy {
  readonly perTurn: number;
  readonly turns: number;
}

/** "5 per turn, 3 turns back" [§4.3]. */
export const DEFAULT_WINDOW: WindowPolicy = Object.freeze({ perTurn: 5, turns: 3 });

/**
 * The tool results that the window closes on, given a session's state (decision D4): those that are active, not pinned, and not among the newest
 * of any turn in the window. Pinned and inactive results count in their turn like all others. Files never collapse. Only ever removes.
 */
export function collapse(state: SessionState, { perTurn, turns }: WindowPolicy): readonly ObjectId[] {
  const kept = new Set<ObjectId>();
  for (let turn = state.turn; turn > Math.max(0, state.turn - turns); turn--) {
    for (const id of state.newestResults(turn, perTurn)) kept.add(id);
  }
  return [...state.collapsible()].filter((id) => !kept.has(id));
}

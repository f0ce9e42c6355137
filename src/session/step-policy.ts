import type { ObjectId } from '../objects/ids.js';
import type { RetentionSettings } from './retention.js';
import type { SessionState } from './session-state.js';

/**
 * The sliding window of §4.3: how many tool results of each turn may stay active, and of how many
 * turns, including the running one.
 */
export interface WindowPolicy {
  readonly perTurn: number;
  readonly turns: number;
}

/** "5 per turn, 3 turns back" [§4.3]. */
const DEFAULT_WINDOW: WindowPolicy = Object.freeze({ perTurn: 5, turns: 3 });

/**
 * Returns the tool results that auto-collapse deactivates (decision D4). They are active, not
 * pinned, and not among the newest of any turn in the window. Pinned and inactive results count in
 * their turn. Files never collapse.
 */
export function collapse(state: SessionState, { perTurn, turns }: WindowPolicy): readonly ObjectId[] {
  const kept = new Set<ObjectId>();
  for (let turn = state.turn; turn > Math.max(0, state.turn - turns); turn--) {
    for (const id of state.newestResults(turn, perTurn)) kept.add(id);
  }
  return [...state.collapsible()].filter((id) => !kept.has(id));
}

/** A pause that ends a turn if no better sign exists (decision B7). */
const DEFAULT_PAUSE_MS = 60_000;

/**
 * The policy for a session's steps: the window of auto-collapse, and the pause after which a call
 * begins a turn.
 */
export interface StepPolicy {
  readonly window: WindowPolicy;
  readonly pauseMs: number;
  /**
   * The objects that stay active: those of the window [§4.3], or those that the model used lately
   * (decision 0014). Default: `window`.
   */
  readonly retention?: 'window' | 'use';
  /** With `use`, overrides the default lifetimes. */
  readonly uses?: Partial<RetentionSettings>;
}

/** The objects that leave the active set after a step, and those that return. */
export interface Turnover {
  readonly leave: readonly ObjectId[];
  readonly back: readonly ObjectId[];
}

/** The policy at one step of a session. */
export interface StepRules extends StepPolicy {
  /** Replaces the rule of the window. */
  readonly turnover?: ((after: SessionState) => Turnover) | undefined;
}

/**
 * The default policy: five results for each of three turns, and a pause of a minute.
 *
 * @example
 * ```ts
 * const policy = { ...DEFAULT_POLICY, pauseMs: 5_000 };
 * ```
 */
export const DEFAULT_POLICY: StepPolicy = Object.freeze({ window: DEFAULT_WINDOW, pauseMs: DEFAULT_PAUSE_MS });

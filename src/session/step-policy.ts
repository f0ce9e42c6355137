import type { ObjectId } from '../objects/ids.js';
import type { Step } from '../objects/step.js';
import type { RetentionSettings } from './retention.js';
import type { SessionState } from './session-state.js';

/** The sliding window of §4.3: how many tool results of each turn may stay active, and of how many turns, the running one included. */
export interface WindowPolicy {
  readonly perTurn: number;
  readonly turns: number;
}

/** "5 per turn, 3 turns back" [§4.3]. */
const DEFAULT_WINDOW: WindowPolicy = Object.freeze({ perTurn: 5, turns: 3 });

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

/** A pause of a minute ends a turn where nothing better is known (decision B7). */
const DEFAULT_PAUSE_MS = 60_000;

/** What a step brings with it that may begin a turn. */
export interface TurnHint {
  /** When the work of the step began, milliseconds since 1970: a long call is no pause. */
  readonly startedAt: number;
  readonly userMessage?: boolean;
  /** The client's own id of its turn. */
  readonly turnRef?: string | undefined;
}

/**
 * Whether a step begins a turn, and by which rule (decision B7); undefined when it belongs to the running one.
 * A turn that a user message began ends with the next user message alone: client turns and pauses stand in only where no user message is visible.
 */
export function openingOf(state: SessionState, { startedAt, userMessage, turnRef }: TurnHint, pauseMs: number): Step['opens'] {
  if (userMessage === true) return { rule: 'user-message' };
  if (state.turnRule === 'user-message') return undefined;
  if (turnRef !== undefined) return turnRef === state.turnRef ? undefined : { rule: 'client-turn', ref: turnRef };
  if (state.turnRule === undefined) return { rule: 'first-step' };
  return startedAt - state.lastAt >= pauseMs ? { rule: 'pause' } : undefined;
}

/** What governs the steps of a session: the window of auto-collapse, and the pause after which a call begins a turn. */
export interface StepPolicy {
  readonly window: WindowPolicy;
  readonly pauseMs: number;
  /** Which objects stay active: those of the window [§4.3], or those that the model's words used lately (decision 0014); `window` if left out. */
  readonly retention?: 'window' | 'use';
  /** How long texts stay with `use`, where that is not as usual. */
  readonly uses?: Partial<RetentionSettings>;
}

/** What leaves the active set and what comes back to it after a step. */
export interface Turnover {
  readonly leave: readonly ObjectId[];
  readonly back: readonly ObjectId[];
}

/** A policy at one step of a session. */
export interface StepRules extends StepPolicy {
  /** In place of the window. */
  readonly turnover?: ((after: SessionState) => Turnover) | undefined;
}

/** The default policy: five results of each of three turns, a pause of a minute. */
export const DEFAULT_POLICY: StepPolicy = Object.freeze({ window: DEFAULT_WINDOW, pauseMs: DEFAULT_PAUSE_MS });

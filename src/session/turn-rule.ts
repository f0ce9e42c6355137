import type { Step } from '../objects/step.js';
import type { SessionState } from './session-state.js';

/** A pause of a minute ends a turn where nothing better is known (decision B7). */
export const DEFAULT_PAUSE_MS = 60_000;

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

import type { ObjectId, SessionId, Sha256 } from './ids.js';
import type { Message } from './object-type.js';
import type { SetChanges } from './sets.js';

/** What made a turn begin (decision B7). */
export type TurnRule = 'user-message' | 'client-turn' | 'pause' | 'first-step';

/** How the answer that an agent was given can be proved later (decision E7). */
export interface AnswerProof {
  readonly sha256: Sha256;
  readonly chars: number;
}

/**
 * One step of a session (decision G3): one message, or one tool call, or neither, with the changes of the sets that it caused.
 * Written once, never rewritten; a session is the fold of its steps.
 */
export interface Step {
  readonly session: SessionId;
  /** From 1, without gaps within a session. */
  readonly seq: number;
  /** The turn that the step belongs to, from 1. */
  readonly turn: number;
  /** Moment of acknowledgement, milliseconds since 1970; never falls within a session. Steps of one millisecond are ordered by `seq` (decision F7). */
  readonly at: number;
  /** Present on the first step of a turn: which rule began it, with the client's own turn id where it sent one. */
  readonly opens?: { readonly rule: TurnRule; readonly ref?: string };
  readonly message?: Message;
  readonly call?: { readonly id: ObjectId; readonly answer?: AnswerProof };
  readonly changes: SetChanges;
  /** Ids that were explicitly activated in this step, also those active before: they count as fresh from here on (decision D4). */
  readonly fresh?: readonly ObjectId[];
}

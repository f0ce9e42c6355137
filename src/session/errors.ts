import { CodedError } from '../values/coded-error.js';

/** What can go wrong with a session and its steps. */
export type SessionErrorCode =
  | 'sequence-gap'
  | 'out-of-order'
  | 'wrong-session'
  | 'unknown-object'
  | 'infrastructure-object'
  | 'repeated-call'
  | 'invalid-message'
  | 'unknown-session'
  | 'session-exists'
  /** The end of a turn is named that may go on. */
  | 'turn-running'
  | 'closed'
  | 'other-roots'
  | 'lease-held'
  /** A step changed no set, or everything that it changed stands as it was before. */
  | 'nothing-to-undo'
  /** Later steps changed the same objects. */
  | 'changed-since'
  | 'taken-over'
  /** Something acknowledged was refused by the database for good; it stays in the journal. */
  | 'not-kept'
  | 'node-unavailable';

/** Thrown when a step does not fit its session, or a session cannot be worked with [§3]. Callers branch on `code`. */
export class SessionError extends CodedError<SessionErrorCode> {
  override readonly name = 'SessionError';
}

/** Whether an error says that nothing more can be written to a session before it is opened again. */
export function isLoss(error: unknown): error is SessionError {
  return error instanceof SessionError && (error.code === 'taken-over' || error.code === 'not-kept');
}

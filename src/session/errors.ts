import { CodedError } from '../values/coded-error.js';

/** The possible errors of a session and its steps. */
export type SessionErrorCode =
  | 'sequence-gap'
  | 'out-of-order'
  | 'wrong-session'
  | 'unknown-object'
  | 'infrastructure-object'
  | 'repeated-call'
  | 'invalid-message'
  | 'unknown-session'
  /** The session was erased, so nothing is recorded under its name again. */
  | 'erased'
  | 'session-exists'
  /** The request names the end of a turn that may continue. */
  | 'turn-running'
  | 'closed'
  | 'other-roots'
  | 'lease-held'
  /** A step changed no set, or all its changes are undone already. */
  | 'nothing-to-undo'
  /** Later steps changed the same objects. */
  | 'changed-since'
  | 'taken-over'
  /** The database refused an acknowledged write for good. The write stays in the journal. */
  | 'not-kept'
  | 'node-unavailable';

/**
 * Thrown if a step does not fit its session, or a session is not usable [§3]. Callers branch on
 * `code`.
 *
 * @example
 * ```ts
 * if (error instanceof SessionError && error.code === 'lease-held')
 *   await client.openSession({ id, takeOver: true });
 * ```
 */
export class SessionError extends CodedError<SessionErrorCode> {
  override readonly name = 'SessionError';
}

/** Returns whether an error means that a session is not writable until it is opened again. */
export function isLoss(error: unknown): error is SessionError {
  return error instanceof SessionError && (error.code === 'taken-over' || error.code === 'not-kept');
}

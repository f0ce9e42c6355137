import { CodedError } from '../values/coded-error.js';

/** What keeps a session from being locked for this process. */
export type LeaseErrorCode = 'held' | 'unwritable';

/**
 * Thrown when this process cannot have a session to itself (decision F5). `held` means that another living process works on it; the message names it
 * and says what to do. `unwritable` means that the lock could not be kept in the data folder.
 */
export class LeaseError extends CodedError<LeaseErrorCode> {
  override readonly name = 'LeaseError';
}

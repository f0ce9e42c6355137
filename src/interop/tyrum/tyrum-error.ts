import { CodedError } from '../../values/coded-error.js';

/**
 * What can be wrong with something that is asked for in Tyrum's terms.
 *
 * - `invalid-settings`: a number below its least value, or of the wrong kind; the message names it
 * - `unknown-report`: there is no context report of that id, or none that may be seen here
 */
export type TyrumErrorCode = 'invalid-settings' | 'unknown-report';

/** Thrown for what Tyrum's contract refuses. Callers branch on `code`. */
export class TyrumError extends CodedError<TyrumErrorCode> {
  override readonly name = 'TyrumError';
}

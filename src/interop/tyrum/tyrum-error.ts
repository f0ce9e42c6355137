import { CodedError } from '../../values/coded-error.js';

/**
 * What can be wrong with something that is asked for in Tyrum's terms.
 *
 * - `invalid-settings`: a number below its least value, or of the wrong kind; the message names it
 * - `unknown-report`: there is no context report of that id, or none that may be seen here
 * - `invalid-memory`: what is to be remembered is not valid; the message names the field
 * - `unknown-memory`: the agent remembers no item of that id
 * - `checkpoint-refused`: a checkpoint that somebody wrote is not valid, too long, or does not name what it must; the message says what
 */
export type TyrumErrorCode = 'invalid-settings' | 'unknown-report' | 'checkpoint-refused' | 'invalid-memory' | 'unknown-memory';

/** Thrown for what Tyrum's contract refuses. Callers branch on `code`. */
export class TyrumError extends CodedError<TyrumErrorCode> {
  override readonly name = 'TyrumError';
}

import { CodedError } from '../../values/coded-error.js';

/**
 * What a context manager of Amplifier can be refused.
 *
 * - `other-history`: a whole list is set that neither goes on from the session's nor is a part of it
 */
export type AmplifierErrorCode = 'other-history';

/** Thrown for a list that does not fit the session's. Callers branch on `code`; nothing changed. */
export class AmplifierError extends CodedError<AmplifierErrorCode> {
  override readonly name = 'AmplifierError';
}

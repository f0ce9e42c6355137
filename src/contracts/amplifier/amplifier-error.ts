import { CodedError } from '../../values/coded-error.js';

/**
 * Why an Amplifier request is rejected.
 *
 * - `other-history`: the list to set is neither a continuation nor a subset of the session's list
 */
export type AmplifierErrorCode = 'other-history';

/**
 * Thrown if a list conflicts with the recorded one. Callers branch on `code`. Nothing was changed.
 */
export class AmplifierError extends CodedError<AmplifierErrorCode> {
  override readonly name = 'AmplifierError';
}

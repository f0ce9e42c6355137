import { CodedError } from '../../values/coded-error.js';

/**
 * Why a request on Tyrum's surface is rejected.
 *
 * - `invalid-settings`: a number is too small or of the wrong type; the message names it
 * - `unknown-report`: no visible context report has that id
 * - `invalid-memory`: the item to remember is invalid; the message names the field
 * - `unknown-memory`: the agent has no item with that id
 * - `checkpoint-refused`: a written checkpoint is invalid, too long, or lacks a required
 *   identifier; the message states the fault
 */
export type TyrumErrorCode =
  | 'invalid-settings'
  | 'unknown-report'
  | 'checkpoint-refused'
  | 'invalid-memory'
  | 'unknown-memory';

/** Thrown if Tyrum's contract rejects a request. Callers branch on `code`. */
export class TyrumError extends CodedError<TyrumErrorCode> {
  override readonly name = 'TyrumError';
}

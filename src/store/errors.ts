import { DocumentError } from '../objects/errors.js';
import { CodedError } from '../values/coded-error.js';

/** What can be wrong with what the database holds or with a write to it. */
export type StoreErrorCode = 'conflict' | 'corrupt-part' | 'missing-part' | 'unknown-session' | 'closed';

/**
 * Thrown when stored versions or parts cannot be read back whole, or the guard of a write failed because of another writer.
 * `corrupt-part` and `missing-part` mean damage in the database: the message names the part.
 */
export class StoreError extends CodedError<StoreErrorCode> {
  override readonly name = 'StoreError';
}

/** What reading throws for what is not in the database as it was written. */
export type DamageError = StoreError | DocumentError;

/** Whether an error says that the database does not hold what was written to it, rather than that it could not be asked. */
export function isDamage(error: unknown): error is DamageError {
  return error instanceof StoreError || error instanceof DocumentError;
}

/** Whether something is not there, rather than not as it was written. */
export function isMissingPart(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'missing-part';
}

import { DocumentError } from '../objects/errors.js';
import { CodedError } from '../values/coded-error.js';

/** Why stored data cannot be read, or a write failed. */
export type StoreErrorCode = 'conflict' | 'corrupt-part' | 'missing-part' | 'unknown-session' | 'closed';

/**
 * Thrown if stored versions or parts cannot be read completely, or if a write's guard fails because
 * of another writer. `corrupt-part` and `missing-part` mean damage in the database. The message
 * names the part.
 *
 * @example
 * ```ts
 * if (error instanceof StoreError && error.code === 'corrupt-part') show(error.message);
 * ```
 */
export class StoreError extends CodedError<StoreErrorCode> {
  override readonly name = 'StoreError';
}

/** The errors of a read whose stored data differs from the written data. */
export type DamageError = StoreError | DocumentError;

/** Returns whether an error means damaged data, as opposed to an unreachable database. */
export function isDamage(error: unknown): error is DamageError {
  return error instanceof StoreError || error instanceof DocumentError;
}

/** Returns whether an error means missing data, as opposed to changed data. */
export function isMissingPart(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'missing-part';
}

import { CodedError } from '../../values/coded-error.js';

/** Reasons why a replay cannot start or continue. */
type ReplayErrorCode =
  | 'other-session'
  | 'other-config'
  | 'lost-measures'
  | 'no-session'
  | 'bad-config'
  | 'bad-target'
  | 'interrupted';

/**
 * Thrown when a replay cannot start or continue. Faults inside a recording are not thrown but
 * reported as losses.
 */
export class ReplayError extends CodedError<ReplayErrorCode> {
  override readonly name = 'ReplayError';

  override get isUsage(): boolean {
    return this.code === 'bad-config';
  }
}

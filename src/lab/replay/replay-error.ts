import { CodedError } from '../../values/coded-error.js';

/** Why a replay cannot begin or go on. */
type ReplayErrorCode =
  | 'other-session'
  | 'other-config'
  | 'lost-measures'
  | 'no-session'
  | 'bad-config'
  | 'bad-target'
  | 'interrupted';

/** A replay cannot begin or go on; what is wrong inside a recording is a loss and stands in the report. */
export class ReplayError extends CodedError<ReplayErrorCode> {
  override readonly name = 'ReplayError';

  override get isUsage(): boolean {
    return this.code === 'bad-config';
  }
}

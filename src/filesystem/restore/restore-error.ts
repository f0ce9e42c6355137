import { CodedError } from '../../values/coded-error.js';

/** Why files are not restored, or a restoring is not undone. */
export type RestoreErrorCode =
  /** The folder that was to be made holds something. */
  | 'folder-in-use'
  | 'not-a-folder'
  /** Something would be lost, or cannot be done. */
  | 'not-clean'
  /** A process has the session open. */
  | 'session-open'
  | 'unknown-restore'
  /** Somebody has changed what was restored. */
  | 'changed-since';

/** Thrown when files are not restored, or a restoring is not undone. Nothing was changed then, unless the message says so. */
export class RestoreError extends CodedError<RestoreErrorCode> {
  override readonly name = 'RestoreError';
}

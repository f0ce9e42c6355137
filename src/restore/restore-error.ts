import { CodedError } from '../values/coded-error.js';

/** Why files are not restored, or a restore is not undone. */
export type RestoreErrorCode =
  /** The target folder is not empty. */
  | 'folder-in-use'
  | 'not-a-folder'
  /** The restore would lose data or is impossible. */
  | 'not-clean'
  /** A process has the session open. */
  | 'session-open'
  | 'unknown-restore'
  /** A restored file has changed since the restore. */
  | 'changed-since';

/**
 * Thrown if files are not restored, or a restore is not undone. No file has changed, unless the
 * message says so.
 */
export class RestoreError extends CodedError<RestoreErrorCode> {
  override readonly name = 'RestoreError';
}

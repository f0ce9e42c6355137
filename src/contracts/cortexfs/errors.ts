import { CodedError } from '../../values/coded-error.js';

/**
 * Why an operation on a session directory fails. The format is CortexFS document 000.
 *
 * - `no-session`: the folder is not a session directory
 * - `foreign-session`: the folder belongs to another session
 * - `not-a-prefix`: an append-only file is not the beginning of its new content
 * - `invalid-file`: a file violates the format; the message names file, line and field
 * - `symbolic-link`: a session file or folder is a link
 * - `too-large`: a file exceeds its read limit, or there are too many files
 * - `conflict`: the session and the directory differ; the message names the first line that differs
 * - `unfinished`: an import of a longer copy of the directory was interrupted and must be finished
 *   first
 * - `invalid-policy`: a `gc.policy` is invalid, or would remove raw history
 * - `no-archive`: collected files cannot be moved to the archive
 * - `invalid-budget`: the token limit is invalid
 * - `budget-too-small`: the pack's heading and the user's newest message exceed the limit
 */
export type CortexfsErrorCode =
  | 'no-session'
  | 'foreign-session'
  | 'not-a-prefix'
  | 'invalid-file'
  | 'symbolic-link'
  | 'too-large'
  | 'conflict'
  | 'unfinished'
  | 'invalid-policy'
  | 'no-archive'
  | 'invalid-budget'
  | 'budget-too-small';

/**
 * Thrown when a session directory cannot be read or written as requested. Nothing was changed.
 * Callers branch on `code`.
 */
export class CortexfsError extends CodedError<CortexfsErrorCode> {
  override readonly name = 'CortexfsError';

  override get isUsage(): boolean {
    return this.code === 'invalid-budget' || this.code === 'budget-too-small';
  }
}

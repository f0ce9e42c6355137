import { CodedError } from '../../values/coded-error.js';

/**
 * What can be wrong with a session directory (document 000).
 *
 * - `no-session`: the folder is no session directory
 * - `foreign-session`: it is that of another session
 * - `not-a-prefix`: an append-only file of it is not the beginning of what would be written
 * - `invalid-file`: a file does not follow the document; the message names file, line and field
 * - `symbolic-link`: a link stands where a file or folder of the session must be
 * - `too-large`: a file is larger than what is read of one, or there are too many
 * - `conflict`: a session that is there says something else than the directory; the message names the first line
 * - `unfinished`: an import of a longer directory was broken off, which has to be finished first
 * - `invalid-policy`: a `gc.policy` that cannot be read, or would let raw history go
 * - `no-archive`: collected files cannot be moved there
 * - `invalid-budget`: a limit of tokens that cannot be meant
 * - `budget-too-small`: the newest message of the user alone takes more than the limit
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

/** Thrown when a session directory cannot be read or written as it is asked for; nothing was changed then. Callers branch on `code`. */
export class CortexfsError extends CodedError<CortexfsErrorCode> {
  override readonly name = 'CortexfsError';

  override get isUsage(): boolean {
    return this.code === 'invalid-budget' || this.code === 'budget-too-small';
  }
}

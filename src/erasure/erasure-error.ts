import { CodedError } from '../values/coded-error.js';

/** Why an erasure is refused. Nothing was changed. */
export type ErasureErrorCode =
  | 'usage'
  | 'unknown-session'
  | 'unknown-object'
  | 'wrong-kind'
  /** No recorded text contains the text to erase. */
  | 'not-found'
  /** The erasure would remove nearly everything, or nearly everything contains its text. */
  | 'matches-all'
  /** Forks of the session need its steps. */
  | 'has-forks'
  /** An import runs or was interrupted. No document names the import's texts yet. */
  | 'importing'
  /** A running process has the session open. */
  | 'session-open'
  /** Sessions that the user did not select would lose content too. */
  | 'shared'
  | 'no-plan'
  /** The erasure would now remove more than its plan says. */
  | 'beyond-plan'
  /** The plan file does not match its own digest. */
  | 'forged-plan'
  /** The database is on another machine, so this machine cannot rewrite its files. */
  | 'not-here'
  /** A copy could not be erased yet. Repeating the command resumes the erasure. */
  | 'unfinished';

const USAGE: ReadonlySet<ErasureErrorCode> = new Set(['usage', 'matches-all', 'wrong-kind']);

/**
 * Thrown if an erasure is refused or is not finished yet. The message gives the reason and the
 * remedy.
 *
 * @example
 * ```ts
 * if (error instanceof ErasureError && error.code === 'has-forks') show(error.message);
 * ```
 */
export class ErasureError extends CodedError<ErasureErrorCode> {
  override readonly name = 'ErasureError';

  override get isUsage(): boolean {
    return USAGE.has(this.code);
  }
}

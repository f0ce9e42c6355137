import { CodedError } from '../values/coded-error.js';

/** The reasons why an erasure is refused. Nothing was changed. */
export type ErasureErrorCode =
  | 'usage'
  | 'unknown-session'
  | 'unknown-object'
  | 'wrong-kind'
  /** The text to erase is in no recorded text. */
  | 'not-found'
  /** The order would take nearly everything, or its text is in nearly everything. */
  | 'matches-all'
  /** Forks need the steps of the session. */
  | 'has-forks'
  /** An import runs or was interrupted. No document names its texts yet. */
  | 'importing'
  /** A living process has the session open. */
  | 'session-open'
  /** Sessions that the order does not name would lose content too. */
  | 'shared'
  | 'no-plan'
  /** The order would now erase more than its plan says. */
  | 'beyond-plan'
  /** The plan's file does not match its own digest. */
  | 'forged-plan'
  /** Another machine holds the database, so this one cannot rewrite its files. */
  | 'not-here'
  /** A copy could not be erased yet. Repeating the command resumes the order. */
  | 'unfinished';

const USAGE: ReadonlySet<ErasureErrorCode> = new Set(['usage', 'matches-all', 'wrong-kind']);

/**
 * An erasure was refused, or it is not finished yet. The message gives the reason and the remedy.
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

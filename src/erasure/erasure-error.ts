import { CodedError } from '../values/coded-error.js';

/** Why an erasure is refused or unfinished. Nothing was changed, except with `unfinished`. */
export type ErasureErrorCode =
  | 'usage'
  | 'unknown-session'
  | 'unknown-object'
  | 'wrong-kind'
  /** No recorded text contains the text to erase. */
  | 'not-found'
  /** The selection matches nearly everything, or most steps and objects contain the text. */
  | 'matches-all'
  /** Forks of the session need its steps. */
  | 'has-forks'
  /** An import runs or was interrupted. No document names the import's texts yet. */
  | 'importing'
  /** A running process has the session open. */
  | 'session-open'
  /** Several sessions show the content and would lose the proof of their contexts. */
  | 'shared'
  | 'no-plan'
  /** The erasure would now remove more than its plan says. */
  | 'beyond-plan'
  /** The plan file does not match its own digest. */
  | 'forged-plan'
  /** The database is on another machine, so this machine cannot rewrite its files. */
  | 'not-here'
  /** A part of the erasure could not be done yet. `palimpsest erase --resume` continues it. */
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

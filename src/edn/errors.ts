import { CodedError } from '../values/coded-error.js';

/** Why a value cannot be written, or a text cannot be read, as EDN or transit. */
export type EdnErrorCode =
  /** The text ends inside a form, or contains none. */
  | 'truncated'
  /** A closing bracket does not match the open one. */
  | 'mismatched'
  /** The text continues after its one form. */
  | 'trailing'
  /** Legal EDN that no XTDB answer of ours needs and that the underlying parser reads wrongly. */
  | 'unsupported'
  /** A number that is not finite or beyond 2^53, or a text that only begins like a number. */
  | 'bad-number'
  /** A string with a lone surrogate, or with an escape that EDN does not have. */
  | 'bad-string'
  /** The name of a keyword, symbol or tag contains characters that could be read as syntax. */
  | 'bad-name'
  | 'duplicate-key'
  | 'too-large'
  | 'too-deep'
  /**
   * A JavaScript value without an EDN form (undefined, a function, a plain object, an invalid
   * Date).
   */
  | 'not-a-value';

/**
 * Thrown if a value cannot be written as EDN or transit, or if a text is not exactly one complete
 * form.
 *
 * Callers branch on `code`. The message names the position and repeats at most a few characters of
 * the data.
 */
export class EdnError extends CodedError<EdnErrorCode> {
  override readonly name = 'EdnError';
}

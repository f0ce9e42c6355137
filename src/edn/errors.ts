import { CodedError } from '../values/coded-error.js';

/** Every way in which a value or a text can fail to be EDN or transit that we are willing to write or read. */
export type EdnErrorCode =
  /** The text ends inside a form, or holds none. */
  | 'truncated'
  /** A closing bracket does not belong to the bracket it meets. */
  | 'mismatched'
  /** Something follows the one form that a text may hold. */
  | 'trailing'
  /** Legal EDN that no XTDB answer of ours needs and that the parser beneath is known to read wrongly. */
  | 'unsupported'
  /** Not finite, beyond 2^53, or not a number although it begins like one. */
  | 'bad-number'
  /** A string with a lone surrogate, or with an escape that EDN does not have. */
  | 'bad-string'
  /** The name of a keyword, a symbol or a tag holds what could be read as syntax. */
  | 'bad-name'
  | 'duplicate-key'
  | 'too-large'
  | 'too-deep'
  /** A JavaScript value that stands for no EDN value (undefined, a function, a plain object, an invalid Date). */
  | 'not-a-value';

/**
 * A value that cannot be written as EDN or transit, or a text that cannot be read as exactly one complete form.
 *
 * Callers match `code`; the message names the place and never repeats more than a few characters of the data.
 */
export class EdnError extends CodedError<EdnErrorCode> {
  override readonly name = 'EdnError';
}

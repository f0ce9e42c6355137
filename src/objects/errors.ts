import { CodedError } from '../values/coded-error.js';

/** The reasons for which a value is rejected as an object or a part of one. */
export type DocumentErrorCode =
  | 'invalid-id'
  | 'invalid-path'
  | 'unknown-type'
  | 'unknown-source-type'
  | 'unknown-field'
  | 'missing-field'
  | 'invalid-value'
  | 'not-finite'
  | 'lone-surrogate'
  | 'hash-mismatch';

/**
 * Thrown if a value cannot be an object, an id or a path of the object model [§2]. Callers branch
 * on `code`. The message names the value and the accepted form.
 *
 * @example
 * ```ts
 * if (error instanceof DocumentError && error.code === 'invalid-id') show(error.message);
 * ```
 */
export class DocumentError extends CodedError<DocumentErrorCode> {
  override readonly name = 'DocumentError';
}

/**
 * Formats a value for an error message: JSON, at most 120 characters, so that no message contains a
 * document.
 */
export function quoted(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

import { CodedError } from '../../values/coded-error.js';

/** The reasons why a question about the past cannot be answered. */
export type HistoryErrorCode =
  | 'unknown-session'
  | 'unknown-object'
  /** It was erased on an order of the database's owner. The message names the order. */
  | 'erased'
  /** A prefix or path that matches several objects. The message names some. */
  | 'ambiguous'
  /** A turn, step or transaction beyond the last one. */
  | 'beyond-end'
  /** A moment in none of the known forms. */
  | 'malformed-moment'
  /** A turn without its session. */
  | 'which-session'
  /** The object or session exists, but not yet at that moment. */
  | 'not-yet'
  /** A model call whose context Palimpsest did not record (decision E12). */
  | 'not-seen'
  /** A change of the sets of a session whose requests another agent builds. */
  | 'foreign-session'
  /** A stub, a deleted file, or bytes that are not text. */
  | 'no-content'
  /** The question does not apply to this kind of object. */
  | 'wrong-kind'
  /** A reviewer's note without text. */
  | 'empty-note'
  /** A search for an empty text, or an expression that the engine does not support. */
  | 'malformed-pattern'
  | 'malformed-query'
  /** The query calls a function that is not on the list. */
  | 'query-refused'
  /** The query folds more sessions than one query may. The message names the limit. */
  | 'query-too-wide'
  | 'query-timeout'
  /** A verification exceeded its time limit. */
  | 'verify-timeout'
  /**
   * A later version of Palimpsest made the context, with a renderer or layout that this version
   * lacks.
   */
  | 'newer-renderer'
  /** At the context's basis, the session has other steps than the record says. */
  | 'other-steps';

/** Codes of malformed questions. These errors do not depend on the content of the database. */
const USAGE: ReadonlySet<HistoryErrorCode> = new Set([
  'malformed-moment',
  'which-session',
  'wrong-kind',
  'empty-note',
  'malformed-pattern',
  'malformed-query',
  'query-refused',
  'query-too-wide',
]);

/**
 * Thrown if a question about the past cannot be answered. The message names the question, the
 * reason and an alternative.
 *
 * @example
 * ```ts
 * if (error instanceof HistoryError && error.code === 'not-seen') show('not recorded');
 * ```
 */
export class HistoryError extends CodedError<HistoryErrorCode> {
  override readonly name = 'HistoryError';

  /** Whether the question itself is malformed. */
  override get isUsage(): boolean {
    return USAGE.has(this.code);
  }
}

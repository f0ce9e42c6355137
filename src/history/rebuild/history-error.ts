import { CodedError } from '../../values/coded-error.js';

/** What can be wrong with a question about the past. */
export type HistoryErrorCode =
  | 'unknown-session'
  | 'unknown-object'
  /** A prefix or path that several fit; the message names some. */
  | 'ambiguous'
  /** A turn, step or transaction beyond the last one. */
  | 'beyond-end'
  /** A moment that cannot be read. */
  | 'malformed-moment'
  /** A turn was named, but not whose. */
  | 'which-session'
  /** The object or session is known, but not yet at that moment. */
  | 'not-yet'
  /** The context of a model call that Palimpsest has no record of (decision E12). */
  | 'not-seen'
  /** There is no text to show: a stub, a deleted file, or bytes that are no text. */
  | 'no-content'
  /** A question that does not fit what it is asked of. */
  | 'wrong-kind'
  /** A reviewer's note that says nothing. */
  | 'empty-note'
  | 'malformed-query'
  /** The query calls what is not on the list of functions. */
  | 'query-refused'
  /** It reaches more than is folded for one query; the message names the bound. */
  | 'query-too-wide'
  | 'query-timeout'
  /** A verification took longer than it was given. */
  | 'verify-timeout'
  /** A context was made by a renderer or layout that this version does not know. */
  | 'newer-renderer'
  /** At the basis of a context its session has other steps than its record says. */
  | 'other-steps';

/** Codes of questions that are asked the wrong way, whatever the database holds. */
const USAGE: ReadonlySet<HistoryErrorCode> = new Set([
  'malformed-moment',
  'which-session',
  'wrong-kind',
  'empty-note',
  'malformed-query',
  'query-refused',
  'query-too-wide',
]);

/** Thrown when a question about the past cannot be answered. The message says what was asked, why it cannot be, and what can be. */
export class HistoryError extends CodedError<HistoryErrorCode> {
  override readonly name = 'HistoryError';

  /** Whether the question itself is at fault, not what it meets. */
  override get isUsage(): boolean {
    return USAGE.has(this.code);
  }
}

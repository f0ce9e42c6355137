import type { CallReport } from '../client/session/call-report.js';
import { CodedError } from '../values/coded-error.js';

/** Why a call failed, for callers that branch on it. */
export type ToolErrorCode =
  | 'invalid-arguments'
  | 'unknown-object'
  | 'not-found'
  | 'not-text'
  | 'out-of-range'
  | 'no-match'
  | 'ambiguous'
  | 'nothing-done'
  | 'command-failed';

/** What a failed call nevertheless learned about files; it is recorded with the call. */
export type Learned = Pick<CallReport, 'readings' | 'mentions'>;

/**
 * Thrown by a tool that cannot do what was asked; written for the model that reads it.
 * `message` says what failed, with the value as it was given; `next` is what to do or call instead. Where both are left to it, the `cause` says it.
 */
export class ToolError extends CodedError<ToolErrorCode> {
  override readonly name = 'ToolError';
  readonly next: string | undefined;
  readonly learned: Learned;

  constructor(code: ToolErrorCode, message: string, next?: string, learned: Learned = {}, options?: { readonly cause?: unknown }) {
    super(code, message, options);
    this.next = next;
    this.learned = learned;
  }
}

const LONGEST_ERROR = 1_900;

/** The text of a failed call: begins with "Error: ", stays under 2 kB. */
export function errorText(message: string, next?: string): string {
  const text = `Error: ${message}${next === undefined ? '' : `\n${next}`}`;
  if (Buffer.byteLength(text) <= LONGEST_ERROR) return text;
  let cut = text.slice(0, LONGEST_ERROR);
  while (Buffer.byteLength(cut) > LONGEST_ERROR - 4) cut = cut.slice(0, Math.floor(cut.length * 0.9));
  return `${cut.toWellFormed()}...`;
}

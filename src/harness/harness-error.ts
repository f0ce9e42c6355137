import { CodedError } from '../values/coded-error.js';

/** The errors in a harness's reports and requests. */
export type HarnessErrorCode =
  /** A result is for a call that was never reported, so the tool is unknown. */
  | 'unknown-call'
  /** The session to resume or fork does not exist. */
  | 'no-such-session'
  /** Layout `epoch` does not support the requested form, or no epoch can begin in the list. */
  | 'not-in-epochs'
  /** The client does not support the request. */
  | 'not-available';

/**
 * Thrown if a harness's report or request is invalid [§5.1]. Callers decide by `code`. Nothing has
 * been recorded.
 *
 * @example
 * ```ts
 * if (error instanceof HarnessError && error.code === 'no-such-session')
 *   await harness.openSession({ id });
 * ```
 */
export class HarnessError extends CodedError<HarnessErrorCode> {
  override readonly name = 'HarnessError';
}

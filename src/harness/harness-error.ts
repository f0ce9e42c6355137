import { CodedError } from '../values/coded-error.js';

/** The possible errors in a harness's reports and requests. */
export type HarnessErrorCode =
  /** A tool result belongs to a call that was never reported, so its tool is unknown. */
  | 'unknown-call'
  /** The session to resume or fork does not exist. */
  | 'no-such-session'
  /** Layout `epoch` does not support the requested form, or no epoch can begin in the list. */
  | 'not-in-epochs'
  /** The underlying client does not support the request. */
  | 'not-available';

/**
 * Thrown if a report contradicts earlier reports [§5.1]. Callers branch on `code`. Nothing of the
 * report was recorded.
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

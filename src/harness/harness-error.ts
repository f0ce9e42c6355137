import { CodedError } from '../values/coded-error.js';

/** What a harness can get wrong when it reports or asks. */
export type HarnessErrorCode =
  /** A tool result whose call was never reported, so that nobody knows which tool it belongs to. */
  | 'unknown-call'
  /** A session that was to be resumed or forked does not exist. */
  | 'no-such-session'
  /** Layout `epoch` is asked for in a form that it does not have, or with a list that none can begin in. */
  | 'not-in-epochs'
  /** The client underneath does not offer what is asked. */
  | 'not-available';

/** Thrown when a report does not fit what was reported before [§5.1]. Callers branch on `code`; nothing of the report was recorded. */
export class HarnessError extends CodedError<HarnessErrorCode> {
  override readonly name = 'HarnessError';
}

import { CodedError } from '../values/coded-error.js';

/**
 * Thrown if `palimpsest watch` fails.
 * - `no-transcript`: a session has no readable transcript
 * - `running`: another process follows the sessions of the data folder
 * - `not-started`: the background process ended before it was ready
 * - `stop-failed`: the running process does not end
 */
export class WatchError extends CodedError<'no-transcript' | 'running' | 'not-started' | 'stop-failed'> {
  override readonly name = 'WatchError';
}

/**
 * Thrown for a session without a transcript. `absent`: the agent wrote no transcript where
 * `palimpsest watch` looks. `left`: the session was begun without its transcript, for example from
 * requests.
 */
export class NoTranscriptError extends WatchError {
  readonly why: 'absent' | 'left';

  constructor(why: 'absent' | 'left', message: string) {
    super('no-transcript', message);
    this.why = why;
  }
}

import { CodedError } from '../values/coded-error.js';

/**
 * `palimpsest watch` cannot do something.
 * - `no-transcript`: a session has no readable transcript
 * - `running`: another process follows the sessions of the data folder
 * - `not-started`: the background process ended before it was ready
 * - `stop-failed`: the running process does not end
 */
export class WatchError extends CodedError<'no-transcript' | 'running' | 'not-started' | 'stop-failed'> {
  override readonly name = 'WatchError';
}

/** The agent wrote no transcript of a session where `palimpsest watch` looks. */
export class AbsentTranscriptError extends WatchError {}

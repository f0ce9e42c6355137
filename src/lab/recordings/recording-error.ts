import { CodedError } from '../../values/coded-error.js';

/** Why a recording cannot be read at all. */
export type RecordingErrorCode = 'unrecognised' | 'empty' | 'binary' | 'unreadable';

/** A recording cannot be read at all; thrown before its first entry only. What is wrong inside a recording is a `Loss`. */
export class RecordingError extends CodedError<RecordingErrorCode> {
  override readonly name = 'RecordingError';
  /** The name that the recording was opened by. */
  readonly recording: string;

  constructor(code: RecordingErrorCode, recording: string, message: string, options?: ErrorOptions) {
    super(code, message, options);
    this.recording = recording;
  }
}

/** Why a recording cannot be read at all. */
export type RecordingErrorCode = 'unrecognised' | 'empty' | 'binary' | 'unreadable';

/** A recording cannot be read at all; thrown before its first entry only. What is wrong inside a recording is a `Loss`. */
export class RecordingError extends Error {
  readonly code: RecordingErrorCode;
  /** The name that the recording was opened by. */
  readonly recording: string;

  constructor(code: RecordingErrorCode, recording: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RecordingError';
    this.code = code;
    this.recording = recording;
  }
}

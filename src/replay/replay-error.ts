/** Why a replay cannot begin or go on. */
export type ReplayErrorCode = 'other-session' | 'lost-measures' | 'no-session' | 'bad-config' | 'bad-target' | 'interrupted';

/** A replay cannot begin or go on; what is wrong inside a recording is a loss and stands in the report. */
export class ReplayError extends Error {
  readonly code: ReplayErrorCode;

  constructor(code: ReplayErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ReplayError';
    this.code = code;
  }
}

import { CodedError } from '../values/coded-error.js';

/** Why an agent's settings cannot be read or changed. */
export type SettingsErrorCode =
  | 'unparsable'
  | 'unfit'
  | 'unreadable'
  | 'changed-meanwhile'
  | 'unusable-folder'
  | 'not-set-up';

/** Thrown if an agent's settings cannot be read or changed. The files stay unchanged. */
export class SettingsError extends CodedError<SettingsErrorCode> {
  override readonly name = 'SettingsError';
}

import { CodedError } from '../values/coded-error.js';

/** Why a bundle is not written or not imported. */
export type BundleErrorCode =
  /** The output file already exists. */
  | 'file-exists'
  /** The bundle would contain text that redaction rules of the session hide. */
  | 'redacted'
  /** The file cannot be read or written. */
  | 'unusable-file'
  /** The file is not a bundle. */
  | 'not-a-bundle'
  /** A later version of Palimpsest wrote the bundle. */
  | 'newer-version'
  /** The bundle is truncated. */
  | 'cut-short'
  /** The bundle has secrets that this data folder masks in its records. */
  | 'secrets'
  /** A part of the bundle does not match its hash. */
  | 'altered'
  /** A part of the bundle does not have the required form. */
  | 'malformed'
  /** The bundle contains a time in the future. */
  | 'future-time'
  /** The bundle is larger than it declares, or larger than the import limit. */
  | 'too-large'
  /** An erasure of the data folder runs or was interrupted. */
  | 'erasing'
  /** The session has no interrupted import that could be finished. */
  | 'nothing-to-finish'
  /** The session saw two lines of versions of its files: the imported and the local one. */
  | 'two-lines'
  /** The database holds different data under an id of the bundle. */
  | 'conflict';

/** Thrown if a bundle is not written or not imported. The call has then changed nothing. */
export class BundleError extends CodedError<BundleErrorCode> {
  override readonly name = 'BundleError';
}

import { CodedError } from '../values/coded-error.js';

/** The reasons for which a bundle is not written or not imported. */
export type BundleErrorCode =
  /** The output file already exists. */
  | 'file-exists'
  /** The bundle would contain text that redaction rules of the session hide. */
  | 'redacted'
  /** The file cannot be read or written. */
  | 'unusable-file'
  /** The file is not a bundle. */
  | 'not-a-bundle'
  /** A later version of Palimpsest wrote it. */
  | 'newer-version'
  /** It is truncated. */
  | 'cut-short'
  /** It has secrets that this data folder does not record. */
  | 'secrets'
  /** A part of it does not match its hash. */
  | 'altered'
  /** A part of it does not have the form of a bundle. */
  | 'malformed'
  /** It contains a time in the future. */
  | 'future-time'
  /** It is larger than it declares, or larger than the import limit. */
  | 'too-large'
  /** An erasure of the data folder runs, or was interrupted. */
  | 'erasing'
  /** The session has no interrupted import that could be finished. */
  | 'nothing-to-finish'
  /**
   * The session saw two lines of versions of its files: the imported ones, and those of this
   * database.
   */
  | 'two-lines'
  /** The database holds different data under an id of the bundle. */
  | 'conflict';

/** Thrown if a bundle is not written or not imported. The call has then changed nothing. */
export class BundleError extends CodedError<BundleErrorCode> {
  override readonly name = 'BundleError';
}

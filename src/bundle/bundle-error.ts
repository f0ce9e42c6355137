import { CodedError } from '../values/coded-error.js';

/** What keeps a bundle from being written or taken in. */
export type BundleErrorCode =
  /** The file that was to be written is there already. */
  | 'file-exists'
  /** It would hold what redaction rules of the session hide. */
  | 'redacted'
  /** The file cannot be read or written. */
  | 'unusable-file'
  /** It is no bundle. */
  | 'not-a-bundle'
  /** A later version of Palimpsest wrote it. */
  | 'newer-version'
  /** It ends before its end. */
  | 'cut-short'
  /** Something in it is not what its hash says. */
  | 'altered'
  /** Something in it is not of the form that bundles have. */
  | 'malformed'
  /** Something in it is of a time that has not come. */
  | 'future-time'
  /** It is larger than it says, or than is taken in. */
  | 'too-large'
  /** No import of the session was cut short where it could be gone on with. */
  | 'nothing-to-finish'
  /** The session saw two lines of versions of its files: those that it was imported with, and those of this database. */
  | 'two-lines'
  /** The database holds something else in the place of what it brings. */
  | 'conflict';

/** Thrown when a bundle is not written or not taken in. Nothing was changed then. */
export class BundleError extends CodedError<BundleErrorCode> {
  override readonly name = 'BundleError';
}

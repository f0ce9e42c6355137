import { systemCode } from '../process/system-error.js';
import { CodedError } from '../values/coded-error.js';
import { ownMember } from '../values/own-member.js';

/**
 * Why a journal operation failed. `full`: its limit is reached, nothing was written. `no-space`,
 * `io`: the disk refused, nothing was acknowledged. `unwritable`: this user cannot write the
 * folder, or it was deleted. `corrupt`: records in the middle are damaged, see `damage`.
 * `newer-format`: written by a later version. `bad-payload`: the bytes are not an encoded record.
 * `closed`: the journal was closed, or a failure could not be undone.
 */
export type JournalErrorCode =
  | 'full'
  | 'no-space'
  | 'io'
  | 'unwritable'
  | 'corrupt'
  | 'newer-format'
  | 'bad-payload'
  | 'closed';

/** A range of a journal file without a valid frame. */
export interface JournalDamage {
  readonly file: string;
  /** Offset of the range in the file, in bytes. */
  readonly offset: number;
  /** Its length in bytes; 0 if the end of a file is missing. */
  readonly length: number;
  /** Number of readable waiting records in the journal before the range. */
  readonly readableBefore: number;
  /** Number of readable waiting records in the journal after the range. */
  readonly readableAfter: number;
}

/** First and last number of a consecutive range. */
export type Range = readonly [first: number, last: number];

/** The losses of a damaged journal. */
export interface JournalLoss {
  /** Numbers of acknowledged records that are unreadable and not known to be in the database. */
  readonly records: readonly Range[];
  /** Whether further records of unknown numbers may be lost. */
  readonly isUncounted: boolean;
}

/**
 * Thrown if a journal of acknowledged steps cannot be written or read (decision H5). Callers branch
 * on `code`; the message names the file and the next action.
 */
export class JournalError extends CodedError<JournalErrorCode> {
  override readonly name = 'JournalError';
  /** The damaged ranges; only with `corrupt`. */
  readonly damage: readonly JournalDamage[];

  constructor(
    code: JournalErrorCode,
    message: string,
    options?: { readonly cause?: unknown; readonly damage?: readonly JournalDamage[] },
  ) {
    super(code, message, options);
    this.damage = options?.damage ?? [];
  }
}

interface Failure {
  readonly code: JournalErrorCode;
  readonly next: string;
}

const NO_SPACE: Failure = { code: 'no-space', next: 'free some space (or raise the limit), then repeat the call' };
const UNWRITABLE: Failure = { code: 'unwritable', next: 'get access to it, or name another data folder' };
const BY_ERRNO: Readonly<Record<string, Failure>> = {
  ENOSPC: NO_SPACE,
  EDQUOT: NO_SPACE,
  EFBIG: NO_SPACE,
  EACCES: UNWRITABLE,
  EPERM: UNWRITABLE,
  EROFS: UNWRITABLE,
};
const OTHER: Failure = { code: 'io', next: 'check the disk, then repeat the call' };

/**
 * Converts a failed system call on a journal to a JournalError. Returns any other error unchanged.
 */
export function journalFailure(what: string, path: string, cause: unknown): unknown {
  const errno = systemCode(cause);
  if (cause instanceof JournalError || errno === undefined) return cause;
  const { code, next } = ownMember(BY_ERRNO, errno) ?? OTHER;
  const reason = cause instanceof Error ? cause.message : errno;
  return new JournalError(code, `${what} ${path} failed (${reason}); nothing was acknowledged: ${next}`, { cause });
}

/** Returns the error for a data folder that was deleted while this process used it. */
export function deletedFolder(folder: string, cause?: unknown): JournalError {
  return new JournalError(
    'unwritable',
    `${folder} was deleted while it was in use; nothing was acknowledged: ` +
      'restart this process, or name another data folder',
    { cause },
  );
}

/** Formats the damaged ranges of a journal for messages. */
export function placesText(damage: readonly JournalDamage[]): string {
  return damage.map(({ file, offset, length }) => `${file} at byte ${offset} (${length} bytes)`).join('; ');
}

/** Returns the error for damage in the middle of a journal. */
export function corruptError(owner: string, damage: readonly JournalDamage[]): JournalError {
  const places = damage.map(
    ({ file, offset, length, readableBefore, readableAfter }) =>
      `${file} at byte ${offset} ` +
      `(${length} bytes; ${readableBefore} waiting records before it and ${readableAfter} after it can be read)`,
  );
  return new JournalError(
    'corrupt',
    `the journal ${owner} is damaged: ${places.join('; ')}. ` +
      'Keep a copy of the file, then restart this process: it delivers the readable records.',
    { damage },
  );
}

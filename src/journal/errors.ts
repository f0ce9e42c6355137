import { systemCode } from '../process/system-error.js';
import { CodedError } from '../values/coded-error.js';
import { ownMember } from '../values/own-member.js';

/**
 * Why a journal cannot do what was asked.
 * `full`: its bound is reached, nothing was written. `no-space`, `io`: the disk refused, nothing was acknowledged. `unwritable`: the folder is not ours
 * to write. `corrupt`: records in the middle are damaged, see `damage`. `newer-format`: made by a later version. `bad-payload`: bytes that are no
 * encoded record. `closed`: after `close`, or after a failure that could not be undone.
 */
export type JournalErrorCode = 'full' | 'no-space' | 'io' | 'unwritable' | 'corrupt' | 'newer-format' | 'bad-payload' | 'closed';

/** A range of a journal's file that holds no valid frame. */
export interface JournalDamage {
  readonly file: string;
  /** Where the range begins, in bytes from the beginning of the file. */
  readonly offset: number;
  /** Its length in bytes; 0 where the end of a file is missing. */
  readonly length: number;
  /** Waiting records of the whole journal before the range that can be read. */
  readonly readableBefore: number;
  /** Waiting records of the whole journal after the range that can be read. */
  readonly readableAfter: number;
}

/** The first and the last of some numbers that follow each other. */
export type Range = readonly [first: number, last: number];

/** What a damaged journal has lost. */
export interface JournalLoss {
  /** Numbers of records that were acknowledged, cannot be read and are not known to be in the database. */
  readonly records: readonly Range[];
  /** Whether there may be others besides, whose numbers nothing tells. */
  readonly isUncounted: boolean;
}

/**
 * Thrown when a journal of acknowledged steps cannot be written or read (decision H5).
 * Callers branch on `code`; the message names the file and says what to do next.
 */
export class JournalError extends CodedError<JournalErrorCode> {
  override readonly name = 'JournalError';
  /** What is damaged, with `corrupt` only. */
  readonly damage: readonly JournalDamage[];

  constructor(code: JournalErrorCode, message: string, options?: { readonly cause?: unknown; readonly damage?: readonly JournalDamage[] }) {
    super(code, message, options);
    this.damage = options?.damage ?? [];
  }
}

interface Failure {
  readonly code: JournalErrorCode;
  readonly next: string;
}

const NO_SPACE: Failure = { code: 'no-space', next: 'free some space (or raise the limit), then repeat the call' };
const UNWRITABLE: Failure = { code: 'unwritable', next: 'give yourself access to it, or name another data folder' };
const BY_ERRNO: Readonly<Record<string, Failure>> = {
  ENOSPC: NO_SPACE,
  EDQUOT: NO_SPACE,
  EFBIG: NO_SPACE,
  EACCES: UNWRITABLE,
  EPERM: UNWRITABLE,
  EROFS: UNWRITABLE,
};
const OTHER: Failure = { code: 'io', next: 'check the disk, then repeat the call' };

/** The error that a failed system call on a journal stands for; what is no failed system call comes back as it is. */
export function journalFailure(what: string, path: string, cause: unknown): unknown {
  const errno = systemCode(cause);
  if (cause instanceof JournalError || errno === undefined) return cause;
  const { code, next } = ownMember(BY_ERRNO, errno) ?? OTHER;
  const reason = cause instanceof Error ? cause.message : errno;
  return new JournalError(code, `${what} ${path} failed (${reason}); nothing was acknowledged: ${next}`, { cause });
}

/** Where a journal is damaged, for people. */
export function placesText(damage: readonly JournalDamage[]): string {
  return damage.map(({ file, offset, length }) => `${file} at byte ${offset} (${length} bytes)`).join('; ');
}

/** The error for damage in the middle of a journal. */
export function corruptError(owner: string, damage: readonly JournalDamage[]): JournalError {
  const places = damage.map(
    ({ file, offset, length, readableBefore, readableAfter }) =>
      `${file} at byte ${offset} (${length} bytes; ${readableBefore} waiting records before it and ${readableAfter} after it can be read)`,
  );
  return new JournalError(
    'corrupt',
    `the journal ${owner} is damaged: ${places.join('; ')}; keep a copy of the file, then start this process again: what can be read is delivered`,
    { damage },
  );
}

import { systemCode } from '../../process/system-error.js';
import { CodedError } from '../../values/coded-error.js';
import { ownMember } from '../../values/own-member.js';

/** Why a path cannot be used as requested. */
export type SourceErrorCode =
  | 'not-found'
  | 'outside-roots'
  | 'is-directory'
  | 'not-regular'
  | 'not-text'
  | 'no-permission'
  | 'unreachable'
  | 'too-large'
  | 'invalid-path'
  | 'loop'
  | 'exists'
  | 'changed-underneath'
  | 'busy'
  | 'io';

/**
 * Thrown if a file or folder cannot be used as requested [§5.5]. Callers branch on `code`. The
 * message names the path as given and never the target of a symbolic link.
 *
 * @example
 * ```ts
 * if (error instanceof SourceError && error.code === 'outside-roots') show(error.path);
 * ```
 */
export class SourceError extends CodedError<SourceErrorCode> {
  override readonly name = 'SourceError';
  /** The path as the caller gave it. */
  readonly path: string;

  constructor(code: SourceErrorCode, message: string, details: { readonly path: string; readonly cause?: unknown }) {
    super(code, message, details);
    this.path = details.path;
  }
}

/** The fault of a search pattern. */
export type PatternErrorCode = 'invalid-regex' | 'invalid-glob';

/**
 * Thrown if a glob or a regular expression is invalid. The message quotes it and names the repair.
 */
export class PatternError extends CodedError<PatternErrorCode> {
  override readonly name = 'PatternError';
}

/**
 * Formats a path or pattern for a message: JSON-quoted, and shortened in the middle if very long.
 */
export function named(path: string): string {
  return JSON.stringify(path.length > 400 ? `${path.slice(0, 200)}[...]${path.slice(-180)}` : path);
}

interface Failure {
  readonly code: SourceErrorCode;
  readonly says: string;
}

const BY_ERRNO: Readonly<Record<string, Failure>> = {
  ENOENT: { code: 'not-found', says: 'does not exist' },
  ENOTDIR: { code: 'not-found', says: 'does not exist: a part of it is not a folder' },
  EISDIR: { code: 'is-directory', says: 'is a folder' },
  EACCES: { code: 'no-permission', says: 'may not be accessed: permission denied' },
  EPERM: { code: 'no-permission', says: 'may not be accessed: operation not permitted' },
  EROFS: { code: 'no-permission', says: 'is on a read-only filesystem' },
  ETXTBSY: { code: 'no-permission', says: 'is a program that is running' },
  ELOOP: { code: 'loop', says: 'runs through a loop of symbolic links' },
  ENAMETOOLONG: { code: 'invalid-path', says: 'is too long for the filesystem' },
  EINVAL: { code: 'invalid-path', says: 'is not a valid path on this filesystem' },
  EILSEQ: { code: 'invalid-path', says: 'is not a valid path on this filesystem' },
  ENXIO: { code: 'not-regular', says: 'is not a regular file' },
  EEXIST: { code: 'exists', says: 'exists already' },
  EFBIG: { code: 'too-large', says: 'is too large for the filesystem' },
  ENOSPC: { code: 'io', says: 'could not be written: no space left on the device' },
  EDQUOT: { code: 'io', says: 'could not be written: the disk quota is used up' },
  EMFILE: { code: 'io', says: 'could not be opened: too many open files' },
  ESTALE: { code: 'unreachable', says: 'is on a filesystem that went away' },
  ENODEV: { code: 'unreachable', says: 'is on a filesystem that went away' },
  ENOTCONN: { code: 'unreachable', says: 'is on a filesystem that is not connected' },
  ETIMEDOUT: { code: 'unreachable', says: 'is on a filesystem that does not answer' },
  EHOSTDOWN: { code: 'unreachable', says: 'is on a filesystem that does not answer' },
};

/**
 * Converts a failed system call on `path` to a {@link SourceError}; returns any other error
 * unchanged. The system's own message names link targets, so it is only kept as `cause`.
 */
export function sourceErrorFrom(error: unknown, path: string): unknown {
  const errno = systemCode(error);
  if (errno === undefined) return error;
  const failure = ownMember(BY_ERRNO, errno) ?? { code: 'io', says: `could not be used: the system answered ${errno}` };
  return new SourceError(failure.code, `${named(path)} ${failure.says}`, { path, cause: error });
}

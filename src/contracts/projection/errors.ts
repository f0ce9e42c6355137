import { CodedError } from '../../values/coded-error.js';

/**
 * Why a view is rejected.
 *
 * - `invalid-budget`: a limit or share out of range
 * - `budget-too-small`: the entries that must stay exceed the limit; the message names the minimum
 */
export type ProjectionErrorCode = 'invalid-budget' | 'budget-too-small';

/** Thrown if a session's entries cannot be shown as requested. Callers branch on `code`. */
export class ProjectionError extends CodedError<ProjectionErrorCode> {
  override readonly name = 'ProjectionError';
  /** The minimum limit in tokens. Present with `budget-too-small` only. */
  readonly least: number | undefined;

  constructor(
    code: ProjectionErrorCode,
    message: string,
    options: { readonly least?: number; readonly cause?: unknown } = {},
  ) {
    super(code, message, options);
    this.least = options.least;
  }

  override get isUsage(): boolean {
    return true;
  }
}

import { CodedError } from '../values/coded-error.js';

/**
 * What can be wrong with a view that is asked for.
 *
 * - `invalid-budget`: a limit or share that cannot be meant
 * - `budget-too-small`: what may never be left out takes more than the limit; the message says how many tokens are the least
 */
export type ProjectionErrorCode = 'invalid-budget' | 'budget-too-small';

/** Thrown when a session's entries cannot be shown as they are asked for. Callers branch on `code`. */
export class ProjectionError extends CodedError<ProjectionErrorCode> {
  override readonly name = 'ProjectionError';
  /** The least limit, in tokens, with which the view can be had; of `budget-too-small` alone. */
  readonly least: number | undefined;

  constructor(code: ProjectionErrorCode, message: string, options: { readonly least?: number; readonly cause?: unknown } = {}) {
    super(code, message, options);
    this.least = options.least;
  }

  override get isUsage(): boolean {
    return true;
  }
}

/**
 * Base of every error of this project: a closed set of codes that callers branch on, a message that says what failed, with which value, and what to do
 * next, and the cause where there is one. One class for each party that can fail.
 */
export abstract class CodedError<Code extends string> extends Error {
  abstract override readonly name: string;
  readonly code: Code;

  constructor(code: Code, message: string, options?: { readonly cause?: unknown }) {
    // An error without a cause has no such property, so that it prints without one.
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
  }

  /** Whether the question, flag or setting itself is at fault, and not what it meets: a command line ends with the exit code of a usage error. */
  get isUsage(): boolean {
    return false;
  }
}

/**
 * Base class of all errors of this project, one class per failing component. Callers branch on a
 * closed set of codes. The message says what failed, with which value, and what to do next; `cause`
 * is optional.
 */
export abstract class CodedError<Code extends string> extends Error {
  abstract override readonly name: string;
  readonly code: Code;

  constructor(code: Code, message: string, options?: { readonly cause?: unknown }) {
    // Without a cause, the property must be absent. Otherwise the error would print `cause:
    // undefined`.
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
  }

  /**
   * Returns whether the question, flag or setting itself is wrong. The command line then exits with
   * the code of a usage error.
   */
  get isUsage(): boolean {
    return false;
  }
}

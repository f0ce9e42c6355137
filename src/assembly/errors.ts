import { CodedError } from '../values/coded-error.js';

/** What can keep a context from being assembled. */
export type AssemblyErrorCode = 'unknown-object';

/** Thrown when the parts of a context do not fit together [§4]: the chat refers to what the pool does not hold. */
export class AssemblyError extends CodedError<AssemblyErrorCode> {
  override readonly name = 'AssemblyError';
}

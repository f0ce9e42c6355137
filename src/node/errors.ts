import { CodedError } from '../values/coded-error.js';

/** Why a node cannot run. Every message names the next step. */
export type NodeErrorCode =
  | 'no-java'
  | 'java-too-old'
  | 'no-maven'
  | 'no-network'
  | 'no-space'
  | 'build-failed'
  | 'incomplete-package'
  | 'data-unwritable'
  | 'data-corrupt'
  | 'data-newer'
  | 'data-older'
  | 'log-unreachable'
  | 'log-denied'
  | 'log-missing'
  | 'log-unfit'
  | 'log-mismatch'
  | 'profile-mismatch'
  | 'locked'
  | 'start-failed'
  | 'out-of-memory'
  | 'ready-timeout'
  | 'ingester-failed'
  | 'stop-failed'
  | 'aborted';

/**
 * Thrown if the database node cannot be built, started, reached or stopped. Callers branch on
 * `code`; the message says what failed, with which value, and what to do next.
 *
 * @example
 * ```ts
 * if (error instanceof NodeError && error.code === 'no-java') show(error.message);
 * ```
 */
export class NodeError extends CodedError<NodeErrorCode> {
  override readonly name = 'NodeError';
}

/** @throws {NodeError} `aborted` if the caller has given up */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted)
    throw new NodeError('aborted', 'Waiting for the node was cancelled by the caller.', { cause: signal.reason });
}

import type { ObjectStore } from '../../store/object-store.js';
import { HistoryError } from '../rebuild/history-error.js';
import type { VerifyProgress } from '../verify/verify-options.js';
import { type SessionVerification, verifySession } from '../verify/verify-session.js';

/** How long a verification over a protocol may take unless told otherwise, milliseconds. */
export const DEFAULT_VERIFY_MS = 60_000;
/** The longest that may be asked for, milliseconds. */
export const MOST_VERIFY_MS = 600_000;

/** Who waits for a verification, and how long. */
export interface VerifyLimits {
  readonly timeoutMs?: number | undefined;
  /** Aborts when nobody waits any more. */
  readonly signal: AbortSignal;
}

/**
 * Verifies a session within a limit of time; see `verifySession`. What is under way when the limit comes is ended first: a request or a context. Throws
 * HistoryError `verify-timeout`, the reason of the signal, and what `verifySession` throws.
 */
export async function askVerify(store: ObjectStore, session: string, { timeoutMs, signal }: VerifyLimits): Promise<SessionVerification> {
  const limitMs = Math.min(timeoutMs ?? DEFAULT_VERIFY_MS, MOST_VERIFY_MS);
  const limit = AbortSignal.timeout(limitMs);
  let reached: VerifyProgress | undefined;
  const onProgress = (progress: VerifyProgress): void => {
    reached = progress;
  };
  try {
    return await verifySession(store, session, { onProgress, signal: AbortSignal.any([signal, limit]) });
  } catch (error) {
    if (!limit.aborted || error !== limit.reason) throw error;
    const far = reached === undefined ? 'before anything was compared' : `at ${reached.what} ${reached.done} of ${reached.total}`;
    throw new HistoryError(
      'verify-timeout',
      `the verification was stopped after ${limitMs / 1_000} s, ${far}: give it more time, or run palimpsest verify, which has no limit`,
      { cause: error },
    );
  }
}

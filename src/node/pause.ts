import { setTimeout as delay } from 'node:timers/promises';
import { systemCode } from '../process/system-error.js';
import { NodeError } from './errors.js';

/** How long one look at another process's files lasts: other processes give no event that can be awaited. */
export const LOOK_AGAIN_MS = 40;

/** Waits a moment, or until the caller gives up (NodeError `aborted`). */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    if (systemCode(error) !== 'ABORT_ERR') throw error;
    throw new NodeError('aborted', 'Waiting for the node was cancelled by the caller.', { cause: error });
  }
}

/**
 * Asks again and again until the answer is not undefined; undefined when `limitMs` has passed first.
 * For conditions of other processes only; inside this process there are events.
 */
export async function waitFor<T>(
  ask: () => Promise<T | undefined>,
  limits: { readonly limitMs: number; readonly signal?: AbortSignal | undefined; readonly everyMs?: number },
): Promise<T | undefined> {
  const deadline = performance.now() + limits.limitMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() >= deadline) return undefined;
    await pause(limits.everyMs ?? LOOK_AGAIN_MS, limits.signal);
  }
}

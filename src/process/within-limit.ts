import { setTimeout as delay } from 'node:timers/promises';
import { defined } from '../values/defined.js';

/**
 * A time limit in milliseconds. With `keepsAlive`, waiting keeps the process alive, for callers
 * that exit after the answer.
 */
export type TimeLimit = number | { readonly ms: number; readonly keepsAlive: boolean };

/**
 * Resolves to the result of `work`, or to the result or error of `late()` once the limit has
 * passed. `work` itself continues. The timer is cleared with the result.
 */
export function withinLimit<T>(work: Promise<T>, limit: TimeLimit, late: () => T | Promise<T>): Promise<T> {
  const { ms, keepsAlive } = typeof limit === 'number' ? { ms: limit, keepsAlive: false } : limit;
  return new Promise((resolve, reject) => {
    // Does not use an abortable timer, because its AbortError with a stack took a tenth of the time
    // of a small read.
    const timer = setTimeout(() => Promise.resolve().then(late).then(resolve, reject), ms);
    if (!keepsAlive) timer.unref();
    work.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

/** Returns whether `work` ends within the limit. Rejects if `work` rejects within it. */
export function endsWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  return withinLimit(
    work.then(() => true),
    limitMs,
    () => false,
  );
}

/**
 * Polls every 40 milliseconds until `ask` returns a value. Returns undefined once `limitMs` have
 * passed. Rejects with an `AbortError` when the signal fires. Only for conditions of other
 * processes, which emit no event.
 */
export async function pollUntil<T>(
  ask: () => Promise<T | undefined>,
  limits: { readonly limitMs: number; readonly signal?: AbortSignal | undefined },
): Promise<T | undefined> {
  const deadline = performance.now() + limits.limitMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() >= deadline) return undefined;
    await delay(40, undefined, defined({ signal: limits.signal }));
  }
}

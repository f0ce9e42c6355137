import { setTimeout as delay } from 'node:timers/promises';
import { defined } from '../values/defined.js';

/** A time limit in milliseconds; waiting keeps the process alive if `keepsAlive` says so, for a caller that ends with the answer. */
export type TimeLimit = number | { readonly ms: number; readonly keepsAlive: boolean };

/**
 * Resolves to what `work` resolves to, or to what `late()` answers or throws once the limit has passed; the work itself goes on. The timer ends with
 * the answer.
 */
export function withinLimit<T>(work: Promise<T>, limit: TimeLimit, late: () => T | Promise<T>): Promise<T> {
  const { ms, keepsAlive } = typeof limit === 'number' ? { ms: limit, keepsAlive: false } : limit;
  return new Promise((resolve, reject) => {
    // Not a timer that is aborted: the error of its abort, with its stack, took a tenth of the time of a small read.
    const timer = setTimeout(() => Promise.resolve().then(late).then(resolve, reject), ms);
    if (!keepsAlive) timer.unref();
    work.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

/** Whether `work` ends within the limit; rejects with what it rejects with by then. */
export function endsWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  return withinLimit(
    work.then(() => true),
    limitMs,
    () => false,
  );
}

/**
 * Asks every 40 milliseconds until the answer is not undefined; undefined when `limitMs` have passed first. Rejects with an
 * `AbortError` when the signal fires. Only for conditions of other processes, which give no event that could be awaited.
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

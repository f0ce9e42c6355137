import { setTimeout as delay } from 'node:timers/promises';

/**
 * What a piece of work comes to, or `late()` once it has taken longer than the limit; the work itself goes on. The timer ends with the answer and does
 * not keep the process alive.
 */
export async function withinLimit<T>(work: Promise<T>, limitMs: number, late: () => T | Promise<T>): Promise<T> {
  const limit = new AbortController();
  const passed = delay(limitMs, undefined, { signal: limit.signal, ref: false }).then(late);
  try {
    return await Promise.race([work, passed]);
  } finally {
    limit.abort();
  }
}

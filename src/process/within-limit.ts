import { setTimeout as delay } from 'node:timers/promises';

/** How a limit is kept. */
export interface LimitOptions {
  /** Whether waiting keeps the process alive, for whoever ends with the answer; false if left out. */
  readonly keepsAlive?: boolean;
}

/**
 * What a piece of work comes to, or what `late()` answers or throws once it has taken longer than the limit; the work itself goes on. The timer ends with
 * the answer.
 */
export async function withinLimit<T>(
  work: Promise<T>,
  limitMs: number,
  late: () => T | Promise<T>,
  { keepsAlive = false }: LimitOptions = {},
): Promise<T> {
  const limit = new AbortController();
  const passed = delay(limitMs, undefined, { signal: limit.signal, ref: keepsAlive }).then(late);
  try {
    return await Promise.race([work, passed]);
  } finally {
    limit.abort();
  }
}

/** Whether a piece of work ends within the limit; rejects with what it rejects with by then. */
export function endsWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  return withinLimit(
    work.then(() => true),
    limitMs,
    () => false,
  );
}

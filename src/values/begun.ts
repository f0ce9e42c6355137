/**
 * Returns work in progress that is awaited later. Its failure surfaces only when it is awaited and
 * never as an unhandled rejection.
 */
export function begun<T>(work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  return work;
}

/** Work that is under way, for later: what it fails with is told when it is awaited, and to nobody where it is not. */
export function begun<T>(work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  return work;
}

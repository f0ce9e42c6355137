/**
 * The valid time of a new version (decision F7): when it became true as far as is known, never later than now, and at least 1 ms after the
 * object's previous version, so that equal milliseconds hide nothing.
 */
export function versionTime(trueSinceMs: number, nowMs: number, previous: Date | undefined): Date {
  const wanted = Math.min(Math.floor(trueSinceMs), nowMs);
  return new Date(previous === undefined ? wanted : Math.max(wanted, previous.getTime() + 1));
}

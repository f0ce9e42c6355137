const BEAT_MS = 250;

/** A watch over the event loop. */
export interface StallMonitor {
  /** Idempotent. */
  close(): void;
}

/**
 * Calls `onStall` after the event loop stood still for `longestMs` or more, when notices of the system may have been lost unseen;
 * shorter stalls from `longestMs - 250` on may count. Keeps no process alive.
 */
export function monitorStalls(longestMs: number, onStall: () => void): StallMonitor {
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    const gap = now - last;
    last = now;
    if (gap >= Math.max(longestMs, 2 * BEAT_MS)) onStall();
  }, BEAT_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
}

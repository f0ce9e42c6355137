import type { FileStamp } from './file-stamp.js';

/** How long a changed file must rest before it is read; all in milliseconds. */
export interface SettleTimes {
  /** Without a change for that long, a file is taken as written to its end. */
  readonly restMs: number;
  /** Missing for that long, a file is taken as deleted: shorter, it is being saved by an editor or a checkout. */
  readonly absentMs: number;
  /** A file that never rests is read after that long all the same. */
  readonly longestMs: number;
}

/** One look at a file that is settling. */
export interface SettleLook {
  readonly stamp: FileStamp;
  /** Since when looks found this same stamp. */
  readonly sameSinceMs: number;
  /** Since when the file is waited for. */
  readonly beganMs: number;
  /** Monotonic, like the two above. */
  readonly nowMs: number;
  /** The system's clock, which files are dated by. */
  readonly clockMs: number;
}

/** Whether to go on, and then whether the file was at rest; else when to look again. */
export type SettleVerdict = { readonly settled: true; readonly atRest: boolean } | { readonly settled: false; readonly againInMs: number };

/** Decides whether a file may be read now. Pure. */
export function settle(look: SettleLook, times: SettleTimes): SettleVerdict {
  const { present } = look.stamp;
  const sameFor = look.nowMs - look.sameSinceMs;
  const rested = present === undefined ? sameFor : Math.max(sameFor, look.clockMs - present.changedAtMs);
  const needed = present === undefined ? times.absentMs : times.restMs;
  if (rested >= needed) return { settled: true, atRest: true };
  const left = times.longestMs - (look.nowMs - look.beganMs);
  // Something missing is on its way back or deleted; the limit is for files that go on growing.
  if (present !== undefined && left <= 0) return { settled: true, atRest: false };
  const wait = present === undefined ? Math.min(needed - rested, times.restMs) : Math.min(needed - rested, left);
  return { settled: false, againInMs: Math.max(1, Math.ceil(wait)) };
}

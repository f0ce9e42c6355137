import pLimit, { type LimitFunction } from 'p-limit';
import { type FileStamp, stampOf } from './file-stamp.js';

/** How long a changed file must rest before it is read, in milliseconds. */
export interface SettleTimes {
  /** Rest after which a write counts as complete. */
  readonly restMs: number;
  /**
   * Absence after which a file counts as deleted. An editor's save or a checkout causes a shorter
   * absence.
   */
  readonly absentMs: number;
  /** Time after which a file is read even if it never rests. */
  readonly longestMs: number;
}

/** One check of a settling file. */
export interface SettleCheck {
  readonly stamp: FileStamp;
  /** Time of the first check since which the file's stamp has not changed. */
  readonly sameSinceMs: number;
  /** Time at which the wait for the file began. */
  readonly beganMs: number;
  /** Time of this check. This time and the two above are monotonic. */
  readonly nowMs: number;
  /** Time of this check by the system clock, by which files are dated. */
  readonly clockMs: number;
}

/** Whether the file may be read, and whether it was at rest. If not, the time of the next check. */
export type SettleVerdict =
  | { readonly settled: true; readonly atRest: boolean }
  | { readonly settled: false; readonly againInMs: number };

/** Decides whether a file may be read now. Pure. */
export function settle(check: SettleCheck, times: SettleTimes): SettleVerdict {
  const { present } = check.stamp;
  const sameFor = check.nowMs - check.sameSinceMs;
  const rested = present === undefined ? sameFor : Math.max(sameFor, check.clockMs - present.changedAtMs);
  const needed = present === undefined ? times.absentMs : times.restMs;
  if (rested >= needed) return { settled: true, atRest: true };
  const left = times.longestMs - (check.nowMs - check.beganMs);
  // A missing file is deleted or about to return. The time limit applies only to files that keep
  // growing.
  if (present !== undefined && left <= 0) return { settled: true, atRest: false };
  const wait = present === undefined ? Math.min(needed - rested, times.restMs) : Math.min(needed - rested, left);
  return { settled: false, againInMs: Math.max(1, Math.ceil(wait)) };
}

/** A file whose changes are reported one at a time. */
export interface QueuedFile {
  readonly path: string;
  /**
   * The stamp's mark of the last reported or known state. If `undefined`, the next check reports
   * the file.
   */
  seen: string | undefined;
}

/**
 * Returns whether a reported file is still in its settled state after it was read. If not, the read
 * may be partial, and the file is reported again once it rests. Always true for a file that never
 * rests long enough.
 */
export type StillAtRest = () => Promise<boolean>;

/** Options of a change queue. */
export interface ChangeQueueOptions<File extends QueuedFile> {
  readonly times: SettleTimes;
  /** Maximum number of concurrent reports. */
  readonly concurrency: number;
  /** Called once a file has settled. If it rejects, the next check reports the file again. */
  readonly report: (file: File, isStill: StillAtRest) => Promise<void>;
  readonly onFailure: (file: File, error: unknown) => void;
}

interface Waiting {
  /** Whether a hint arrived after the last check. */
  again: boolean;
  readonly beganMs: number;
  mark: string | undefined;
  sameSinceMs: number;
  timer: NodeJS.Timeout | undefined;
  /** Time since which every read of the file was followed by another change. */
  readonly restlessSinceMs: number | undefined;
  /** Whether the file changed during the current read. */
  moved: boolean;
}

/**
 * Turns many hints into single reports of settled files. Waits while a file is being written and
 * merges the hints that arrive during the wait. Never runs two reports of a file at once. Drops a
 * hint if the file is as last reported.
 */
export class ChangeQueue<File extends QueuedFile> {
  readonly #options: ChangeQueueOptions<File>;
  readonly #waiting = new Map<File, Waiting>();
  readonly #running = new Set<Promise<void>>();
  readonly #limit: LimitFunction;
  #closed = false;

  constructor(options: ChangeQueueOptions<File>) {
    this.#options = options;
    this.#limit = pLimit(options.concurrency);
  }

  /** Takes a hint that a file may have changed. */
  hint(file: File): void {
    if (this.#closed) return;
    const waiting = this.#waiting.get(file);
    if (waiting !== undefined) {
      waiting.again = true;
      return;
    }
    this.#begin(file, undefined);
  }

  /** Removes a file from the queue. A running report ends, and no other follows. */
  drop(file: File): void {
    const waiting = this.#waiting.get(file);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(file);
  }

  /** Starts no further report and waits for the running ones. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const file of [...this.#waiting.keys()]) this.drop(file);
    await Promise.all(this.#running);
  }

  #begin(file: File, restlessSinceMs: number | undefined): void {
    const nowMs = performance.now();
    const again = { again: false, moved: false };
    const fresh: Waiting = {
      ...again,
      beganMs: nowMs,
      mark: undefined,
      sameSinceMs: nowMs,
      timer: undefined,
      restlessSinceMs,
    };
    this.#waiting.set(file, fresh);
    this.#check(file, fresh);
  }

  #check(file: File, waiting: Waiting): void {
    this.#follow(
      (async () => {
        waiting.again = false;
        const stamp = await stampOf(file.path);
        if (this.#waiting.get(file) === waiting) await this.#judge(file, waiting, stamp);
      })(),
    );
  }

  #follow(work: Promise<void>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  async #judge(file: File, waiting: Waiting, stamp: FileStamp | undefined): Promise<void> {
    // An unreachable file has no stamp. Its state is unknown, and the tracker's sweep keeps
    // checking it.
    if (stamp === undefined || stamp.mark === file.seen) return this.#done(file, waiting);
    const nowMs = performance.now();
    if (stamp.mark !== waiting.mark) waiting.sameSinceMs = nowMs;
    waiting.mark = stamp.mark;
    const verdict = settle(
      { stamp, sameSinceMs: waiting.sameSinceMs, beganMs: waiting.beganMs, nowMs, clockMs: Date.now() },
      this.#options.times,
    );
    if (!verdict.settled) {
      waiting.timer = setTimeout(() => this.#check(file, waiting), verdict.againInMs);
      waiting.timer.unref();
      return;
    }
    await this.#limit(async () => {
      if (this.#waiting.get(file) !== waiting) return;
      // A file in motion can change again within the resolution of its timestamps. Its next state
      // must not look known.
      file.seen = verdict.atRest ? stamp.mark : undefined;
      await this.#report(file, waiting, verdict.atRest ? stamp.mark : undefined);
    });
  }

  async #report(file: File, waiting: Waiting, restedAs: string | undefined): Promise<void> {
    try {
      await this.#options.report(file, () => this.#isStill(file, waiting, restedAs));
    } catch (error) {
      file.seen = undefined;
      waiting.again = false;
      waiting.moved = false;
      this.#options.onFailure(file, error);
      return this.#done(file, waiting);
    }
    waiting.again ||= restedAs === undefined;
    this.#done(file, waiting);
  }

  async #isStill(file: File, waiting: Waiting, restedAs: string | undefined): Promise<boolean> {
    if (restedAs === undefined || (await stampOf(file.path))?.mark === restedAs) return true;
    const { restlessSinceMs } = waiting;
    if (restlessSinceMs !== undefined && performance.now() - restlessSinceMs >= this.#options.times.longestMs)
      return true;
    if (this.#waiting.get(file) === waiting) waiting.moved = true;
    else this.hint(file);
    return false;
  }

  #done(file: File, waiting: Waiting): void {
    if (this.#waiting.get(file) !== waiting) return;
    this.#waiting.delete(file);
    if (this.#closed) return;
    if (waiting.moved) this.#begin(file, waiting.restlessSinceMs ?? performance.now());
    else if (waiting.again) this.hint(file);
  }
}

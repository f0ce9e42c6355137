import pLimit, { type LimitFunction } from 'p-limit';
import { type FileStamp, stampOf } from './file-stamp.js';

/** How long a changed file must rest before it is read; all in milliseconds. */
export interface SettleTimes {
  /** Without a change for that long, a file is taken as written to its end. */
  readonly restMs: number;
  /** Missing for that long, a file is taken as deleted: shorter, it is being saved by an editor or a checkout. */
  readonly absentMs: number;
  /** A file that never rests is read after that long all the same. */
  readonly longestMs: number;
}

/** One check of a file that is settling. */
export interface SettleCheck {
  readonly stamp: FileStamp;
  /** Since when every check found this same stamp. */
  readonly sameSinceMs: number;
  /** Since when the file is waited for. */
  readonly beganMs: number;
  /** Monotonic, like the two above. */
  readonly nowMs: number;
  /** The system's clock, which files are dated by. */
  readonly clockMs: number;
}

/** Whether the file may be read, and then whether it was at rest; else when to check again. */
export type SettleVerdict = { readonly settled: true; readonly atRest: boolean } | { readonly settled: false; readonly againInMs: number };

/** Decides whether a file may be read now. Pure. */
export function settle(check: SettleCheck, times: SettleTimes): SettleVerdict {
  const { present } = check.stamp;
  const sameFor = check.nowMs - check.sameSinceMs;
  const rested = present === undefined ? sameFor : Math.max(sameFor, check.clockMs - present.changedAtMs);
  const needed = present === undefined ? times.absentMs : times.restMs;
  if (rested >= needed) return { settled: true, atRest: true };
  const left = times.longestMs - (check.nowMs - check.beganMs);
  // Something missing is on its way back or deleted; the limit is for files that go on growing.
  if (present !== undefined && left <= 0) return { settled: true, atRest: false };
  const wait = present === undefined ? Math.min(needed - rested, times.restMs) : Math.min(needed - rested, left);
  return { settled: false, againInMs: Math.max(1, Math.ceil(wait)) };
}

/** A file whose changes are reported, one at a time. */
export interface QueuedFile {
  readonly path: string;
  /** Mark of what was last reported or taken as known; `undefined` makes the next check report. */
  seen: string | undefined;
}

/**
 * Asked after a reported file has been read: whether it still stands as it came to rest. When it does not, what was read may be half of something, and
 * the file is reported anew once it rests again. True all the same for one that never rests for long enough.
 */
export type StillAtRest = () => Promise<boolean>;

/** How a queue of changes works. */
export interface ChangeQueueOptions<File extends QueuedFile> {
  readonly times: SettleTimes;
  /** How many files are reported at once, at most. */
  readonly concurrency: number;
  /** Called once a file came to rest; if it rejects, the next check reports the file again. */
  readonly report: (file: File, isStill: StillAtRest) => Promise<void>;
  readonly onFailure: (file: File, error: unknown) => void;
}

interface Waiting {
  /** Whether a hint came after the last check. */
  again: boolean;
  readonly beganMs: number;
  mark: string | undefined;
  sameSinceMs: number;
  timer: NodeJS.Timeout | undefined;
  /** Since when the file changed every time between coming to rest and being read. */
  readonly restlessSinceMs: number | undefined;
  /** Whether it did so this time. */
  moved: boolean;
}

/**
 * Turns many hints into single reports of settled files: a file that is being written is waited for, hints that come meanwhile are one, a file is never
 * reported twice at once, and a hint is dropped when nothing changed since the last report.
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

  /** Forgets a file: a report under way ends, no other follows. */
  drop(file: File): void {
    const waiting = this.#waiting.get(file);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(file);
  }

  /** Begins no further report and waits for those under way. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const file of [...this.#waiting.keys()]) this.drop(file);
    await Promise.all(this.#running);
  }

  #begin(file: File, restlessSinceMs: number | undefined): void {
    const nowMs = performance.now();
    const again = { again: false, moved: false };
    const fresh: Waiting = { ...again, beganMs: nowMs, mark: undefined, sameSinceMs: nowMs, timer: undefined, restlessSinceMs };
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
    // Out of reach: nothing can be said about it; the sweep goes on checking.
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
      // A file in motion can change again within the grain of its own times: what comes next must not look known.
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
    if (restlessSinceMs !== undefined && performance.now() - restlessSinceMs >= this.#options.times.longestMs) return true;
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

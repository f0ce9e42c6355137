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

/** A file whose changes are told, one at a time. */
export interface QueuedFile {
  readonly path: string;
  /** Mark of what was last told or taken as known; `undefined` forces the next look to tell. */
  seen: string | undefined;
}

/**
 * Asks, after a file that was told has been read, whether it still stands as it came to rest. When it does not, what was read may be half of something:
 * the file is told anew once it rests again. True all the same for one that never rests for long enough.
 */
export type StillAtRest = () => Promise<boolean>;

/** How a queue of changes works. */
export interface ChangeQueueOptions<File extends QueuedFile> {
  readonly times: SettleTimes;
  /** How many files are told at once, at most. */
  readonly concurrency: number;
  /** Told once a file came to rest; the file is told again at the next look if it rejects. */
  readonly tell: (file: File, isStill: StillAtRest) => Promise<void>;
  readonly onFailure: (file: File, error: unknown) => void;
}

interface Waiting {
  /** Whether a hint came after the last look. */
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
 * Makes single, settled tellings out of many hints: a file that is being written is waited for, hints that come meanwhile are one, a file is
 * never told twice at once, and a hint behind which nothing changed since the last telling is dropped.
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

  /** Says that a file may have changed. */
  hint(file: File): void {
    if (this.#closed) return;
    const waiting = this.#waiting.get(file);
    if (waiting !== undefined) {
      waiting.again = true;
      return;
    }
    this.#begin(file, undefined);
  }

  /** Whether a file is being waited for or told at the moment. */
  holds(file: File): boolean {
    return this.#waiting.has(file);
  }

  /** Forgets a file: a telling under way ends, no other follows. */
  drop(file: File): void {
    const waiting = this.#waiting.get(file);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(file);
  }

  /** Begins no further telling and waits for those under way. */
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
    this.#look(file, fresh);
  }

  #look(file: File, waiting: Waiting): void {
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
    // Out of reach: nothing can be said about it, the sweep goes on looking.
    if (stamp === undefined || stamp.mark === file.seen) return this.#done(file, waiting);
    const nowMs = performance.now();
    if (stamp.mark !== waiting.mark) waiting.sameSinceMs = nowMs;
    waiting.mark = stamp.mark;
    const verdict = settle(
      { stamp, sameSinceMs: waiting.sameSinceMs, beganMs: waiting.beganMs, nowMs, clockMs: Date.now() },
      this.#options.times,
    );
    if (!verdict.settled) {
      waiting.timer = setTimeout(() => this.#look(file, waiting), verdict.againInMs);
      waiting.timer.unref();
      return;
    }
    await this.#limit(async () => {
      if (this.#waiting.get(file) !== waiting) return;
      // A file in motion can change again within the grain of its own times: what comes next must not look known.
      file.seen = verdict.atRest ? stamp.mark : undefined;
      await this.#tell(file, waiting, verdict.atRest ? stamp.mark : undefined);
    });
  }

  async #tell(file: File, waiting: Waiting, restedAs: string | undefined): Promise<void> {
    try {
      await this.#options.tell(file, () => this.#isStill(file, waiting, restedAs));
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

import type { ObjectId } from '../../objects/ids.js';
import { endsWithin } from '../../process/within-limit.js';
import type { KnownFile } from './reconcile-sources.js';

/** Around some of the files of a resume. */
export interface ResumePart {
  readonly signal: AbortSignal;
  /** Told how many of them have been looked at. */
  readonly onProgress: (done: number) => void;
  /** How many objects the session has, files and others: as many files may follow. */
  readonly objects: number;
}

/** What a resume needs of the trackers. */
export interface SourceResumeOptions {
  /** The files to look at among objects that are known by now. */
  readonly filesOf: (ids: readonly ObjectId[]) => readonly KnownFile[];
  /** Tracks some files and takes up what changed of them. */
  readonly takeUp: (known: readonly KnownFile[], part: ResumePart) => Promise<void>;
  readonly onProgress?: (done: number, total: number) => void;
  readonly onFailure: (error: unknown) => void;
  /** Told once, when nothing more is under way. */
  readonly onEnd: () => void;
}

/**
 * The sources of one session that is opened again, on their way to be what the database has of them [§3.6, steps 3 and 6]. They are taken in as the
 * session's objects are read, so that files are looked at while the database is still asked for others. Problems are told, never thrown: a session can
 * be worked with all the same.
 */
export class SourceResume {
  readonly #options: SourceResumeOptions;
  readonly #stop = new AbortController();
  #work: Promise<void> = Promise.resolve();
  #done = 0;
  #total = 0;
  /** Whether the total is known: nothing is told of a progress that has no end yet. */
  #isWhole = false;

  constructor(options: SourceResumeOptions) {
    this.#options = options;
  }

  /** Takes in objects that are known by now, of so many that there are. */
  take(ids: readonly ObjectId[], objects: number): void {
    const known = this.#options.filesOf(ids);
    if (known.length === 0 || this.#stop.signal.aborted) return;
    this.#total += known.length;
    this.#work = this.#work.then(() => this.#takeUp(known, objects));
  }

  /** Says that everything was taken in. Resolves to true when the database has all of it, or to false after the limit; the rest then follows by itself. */
  within(limitMs: number): Promise<boolean> {
    if (this.#done > 0) this.#options.onProgress?.(this.#done, this.#total);
    this.#isWhole = true;
    const ended = this.#work.then(() => this.#options.onEnd());
    if (this.#total === 0) return ended.then(() => true);
    return endsWithin(ended, limitMs);
  }

  /** Ends it; what is on its way to the database goes on. Idempotent. */
  stop(reason: Error): void {
    this.#stop.abort(reason);
    if (!this.#isWhole) this.#options.onEnd();
  }

  /** Resolves when nothing more is under way. */
  get ended(): Promise<void> {
    return this.#work;
  }

  async #takeUp(known: readonly KnownFile[], objects: number): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const before = this.#done;
    const onProgress = (done: number): void => {
      this.#done = before + done;
      if (this.#isWhole) this.#options.onProgress?.(this.#done, this.#total);
    };
    try {
      await this.#options.takeUp(known, { signal: this.#stop.signal, onProgress, objects });
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.onFailure(error);
    }
  }
}

import type { ObjectId } from '../../objects/ids.js';
import { endsWithin } from '../../process/within-limit.js';
import type { KnownFile } from './reconcile-sources.js';

/** What goes with some of the files of a resume. */
export interface ResumePart {
  readonly signal: AbortSignal;
  /** Called with how many of them have been read. */
  readonly onProgress: (done: number) => void;
  /** How many objects the session has, files and others: as many files may follow. */
  readonly objects: number;
}

/** What a resume needs of the trackers. */
export interface SourceResumeOptions {
  /** The files to read among objects whose metadata is known. */
  readonly filesOf: (ids: readonly ObjectId[]) => readonly KnownFile[];
  /** Tracks some files and indexes what changed of them. */
  readonly indexChanges: (known: readonly KnownFile[], part: ResumePart) => Promise<void>;
  readonly onProgress?: (done: number, total: number) => void;
  readonly onFailure: (error: unknown) => void;
  /** Called once, when nothing more is under way. */
  readonly onEnd: () => void;
}

/**
 * Brings the sources of one session that is opened again into the database [§3.6, steps 3 and 6]. It takes them in as the session's objects are loaded,
 * so that files are read while the database is still asked for others. Failures go to `onFailure` and are never thrown: the session can be worked with
 * all the same.
 */
export class SourceResume {
  readonly #options: SourceResumeOptions;
  readonly #stop = new AbortController();
  #work: Promise<void> = Promise.resolve();
  #done = 0;
  #total = 0;
  /** Whether the total is known: progress is reported only then. */
  #isWhole = false;

  constructor(options: SourceResumeOptions) {
    this.#options = options;
  }

  /** Takes in objects whose metadata is known, of so many that the session has. */
  take(ids: readonly ObjectId[], objects: number): void {
    const known = this.#options.filesOf(ids);
    if (known.length === 0 || this.#stop.signal.aborted) return;
    this.#total += known.length;
    this.#work = this.#work.then(() => this.#indexChanges(known, objects));
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

  async #indexChanges(known: readonly KnownFile[], objects: number): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const before = this.#done;
    const onProgress = (done: number): void => {
      this.#done = before + done;
      if (this.#isWhole) this.#options.onProgress?.(this.#done, this.#total);
    };
    try {
      await this.#options.indexChanges(known, { signal: this.#stop.signal, onProgress, objects });
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.onFailure(error);
    }
  }
}

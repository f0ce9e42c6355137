import type { ObjectId } from '../../objects/ids.js';
import { endsWithin } from '../../process/within-limit.js';
import type { KnownFile } from './reconcile-sources.js';

/** Options for a part of a resume's files. */
export interface ResumePart {
  readonly signal: AbortSignal;
  /** Called with the number of these files read so far. */
  readonly onProgress: (done: number) => void;
}

/** The parts of the trackers that a resume needs. */
export interface SourceResumeOptions {
  /** Returns the files to read among objects with known metadata. */
  readonly filesOf: (ids: readonly ObjectId[]) => readonly KnownFile[];
  /** Tracks some files and indexes their changes. */
  readonly indexChanges: (known: readonly KnownFile[], part: ResumePart) => Promise<void>;
  readonly onProgress?: (done: number, total: number) => void;
  readonly onFailure: (error: unknown) => void;
  /** Called once, when all work has ended. */
  readonly onEnd: () => void;
}

/**
 * Indexes the changed sources of a reopened session [§3.6, steps 3 and 6]. It receives objects
 * while they are loaded, so files are read during the remaining queries. Failures go to `onFailure`
 * and are never thrown, because the session is usable anyway.
 */
export class SourceResume {
  readonly #options: SourceResumeOptions;
  readonly #stop = new AbortController();
  #work: Promise<void> = Promise.resolve();
  #done = 0;
  #total = 0;
  /** Whether the total is known. Progress is reported only then. */
  #isWhole = false;

  constructor(options: SourceResumeOptions) {
    this.#options = options;
  }

  /** Adds objects with known metadata. */
  take(ids: readonly ObjectId[]): void {
    const known = this.#options.filesOf(ids);
    if (known.length === 0 || this.#stop.signal.aborted) return;
    this.#total += known.length;
    this.#work = this.#work.then(() => this.#indexChanges(known));
  }

  /**
   * Marks the input as complete. Resolves to true when the database has everything, or to false on
   * timeout. Then the rest continues in the background.
   */
  within(limitMs: number): Promise<boolean> {
    if (this.#done > 0) this.#options.onProgress?.(this.#done, this.#total);
    this.#isWhole = true;
    const ended = this.#work.then(() => this.#options.onEnd());
    if (this.#total === 0) return ended.then(() => true);
    return endsWithin(ended, limitMs);
  }

  /** Stops the resume. Running deliveries continue. Idempotent. */
  stop(reason: Error): void {
    this.#stop.abort(reason);
    if (!this.#isWhole) this.#options.onEnd();
  }

  /** Resolves when all work has ended. */
  get ended(): Promise<void> {
    return this.#work;
  }

  async #indexChanges(known: readonly KnownFile[]): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const before = this.#done;
    const onProgress = (done: number): void => {
      this.#done = before + done;
      if (this.#isWhole) this.#options.onProgress?.(this.#done, this.#total);
    };
    try {
      await this.#options.indexChanges(known, { signal: this.#stop.signal, onProgress });
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.onFailure(error);
    }
  }
}

import { cutLine, type FoundLine, type FoundText, type SearchTask } from './search-task.js';

/**
 * Gathers the lines of a search file by file, up to the limit of matches.
 * A file's lines count only once it is finished, so that a file that turns out to be binary leaves none.
 */
export class LineCollector {
  readonly #task: SearchTask;
  readonly #lines: FoundLine[] = [];
  #pending: FoundLine[] = [];
  #matches = 0;
  #pendingMatches = 0;
  #truncated = false;
  timedOut = false;
  skipped = 0;

  constructor(task: SearchTask) {
    this.#task = task;
  }

  /** Matching lines that may still come. */
  get room(): number {
    return this.#task.limit - this.#matches - this.#pendingMatches;
  }

  get truncated(): boolean {
    return this.#truncated;
  }

  /** Takes a line of the current file; a match over the limit is refused with false, its leading context taken back. */
  add(path: string, line: number, text: string, isContext: boolean, matchStart = 0): boolean {
    if (!isContext && this.room <= 0) {
      this.#truncated = true;
      const last = this.#pending.findLast((one) => !one.isContext)?.line ?? Number.NEGATIVE_INFINITY;
      this.#pending = this.#pending.filter((one) => one.line <= last + this.#task.context);
      return false;
    }
    this.#pending.push({ path, line, isContext, ...cutLine(text.replace(/\r?\n$/, ''), matchStart) });
    if (!isContext) this.#pendingMatches += 1;
    return true;
  }

  /** Ends the current file, keeping its lines or not. */
  finish(keep: boolean): void {
    if (keep) {
      for (const line of this.#pending) this.#lines.push(line);
      this.#matches += this.#pendingMatches;
    }
    this.#pending = [];
    this.#pendingMatches = 0;
  }

  result(): FoundText {
    this.finish(true);
    return { lines: this.#lines, matches: this.#matches, truncated: this.#truncated, timedOut: this.timedOut, skipped: this.skipped };
  }
}

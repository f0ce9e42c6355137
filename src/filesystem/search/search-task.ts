import { firstUnits, splitsPair } from '../../values/surrogate-pairs.js';
import { named, PatternError } from '../access/errors.js';
import type { AllowedRoots } from '../access/roots.js';

/** One line of a result. */
export interface FoundLine {
  /** Canonical path of a regular file inside the roots. */
  readonly path: string;
  /** Line number, from 1. */
  readonly line: number;
  /**
   * The line without its end. Bytes that are not UTF-8 are replaced. At most 2,000 UTF-16 units
   * around the first match.
   */
  readonly text: string;
  /** Whether the line is only context of a match. */
  readonly isContext: boolean;
  /** Whether `text` is only a part of the line. */
  readonly cut: boolean;
}

/** The result of a search. */
export interface FoundText {
  /** File by file, in line order, each line once, including context. */
  readonly lines: readonly FoundLine[];
  /** Number of matching lines among them. */
  readonly matches: number;
  /** Whether the limit omitted matches. */
  readonly truncated: boolean;
  readonly timedOut: boolean;
  /** Number of files that path and glob select, searched or not. */
  readonly files: number;
  /** Number of matching lines that are too long, and of files whose names are not UTF-8. */
  readonly skipped: number;
  /** Files that were not searched: large ones, and a named binary file. */
  readonly leftOut: readonly LeftOutFile[];
}

/** A file that a search skips. */
export interface LeftOutFile {
  /** The canonical path. */
  readonly path: string;
  readonly bytes: number;
  readonly why: 'too-large' | 'binary';
}

/** The input of both search engines. */
export interface SearchTask {
  readonly roots: AllowedRoots;
  /** Canonical paths of the files to search, in the order of the result. */
  readonly paths: readonly string[];
  /**
   * The file that the agent named, as it wrote the path. Undefined for a folder. If a named file
   * cannot be opened, the search fails. In a folder, such files are skipped.
   */
  readonly named: string | undefined;
  readonly pattern: string;
  readonly literal: boolean;
  readonly ignoreCase: boolean;
  readonly context: number;
  readonly limit: number;
  /** End of the search, on the clock of `performance`. */
  readonly deadline: number;
  readonly signal: AbortSignal | undefined;
}

/** Maximum size of a searched file in bytes. */
export const LARGEST_SEARCHED = 64 * 1024 * 1024;
const LONGEST_TEXT = 2000;

/** Returns the error for a regular expression, with the engine's reason. */
export function invalidRegex(pattern: string, why: string, cause?: unknown): PatternError {
  const advice = 'correct it, escape special characters with "\\", or search for it as plain text (literal)';
  return new PatternError('invalid-regex', `the pattern ${named(pattern)} cannot be searched for: ${why}; ${advice}`, {
    cause,
  });
}

/** Cuts a line to 2,000 units, from its beginning or around a later match. */
function cutLine(text: string, matchStart: number): { readonly text: string; readonly cut: boolean } {
  if (text.length <= LONGEST_TEXT) return { text, cut: false };
  const from = matchStart < LONGEST_TEXT / 2 ? 0 : Math.min(matchStart - LONGEST_TEXT / 4, text.length - LONGEST_TEXT);
  return { text: firstUnits(text.slice(splitsPair(text, from) ? from + 1 : from), LONGEST_TEXT), cut: true };
}

/**
 * Collects the lines of a search file by file, up to the limit of matches. A file's lines count
 * only once it is finished, so that a binary file leaves none.
 */
export class LineCollector {
  readonly #task: SearchTask;
  readonly #lines: FoundLine[] = [];
  #pending: FoundLine[] = [];
  #matches = 0;
  #pendingMatches = 0;
  #isFull = false;
  timedOut = false;
  skipped = 0;
  readonly leftOut: LeftOutFile[] = [];

  constructor(task: SearchTask) {
    this.#task = task;
  }

  /**
   * Adds a line of the current file. Returns false for a match over the limit, removes the context
   * before it, and then refuses all later lines.
   */
  add(place: Pick<FoundLine, 'path' | 'line' | 'isContext'>, text: string, matchStart = 0): boolean {
    if (this.#isFull) return false;
    if (!place.isContext && this.#matches + this.#pendingMatches >= this.#task.limit) {
      this.#isFull = true;
      const last = this.#pending.findLast((one) => !one.isContext)?.line ?? Number.NEGATIVE_INFINITY;
      this.#pending = this.#pending.filter((one) => one.line <= last + this.#task.context);
      return false;
    }
    this.#pending.push({ ...place, ...cutLine(text.replace(/\r?\n$/, ''), matchStart) });
    if (!place.isContext) this.#pendingMatches += 1;
    return true;
  }

  /**
   * Ends the current file and keeps or drops its lines. Returns false if the limit was reached and
   * there were more matches.
   */
  finish(keep: boolean): boolean {
    if (keep) {
      for (const line of this.#pending) this.#lines.push(line);
      this.#matches += this.#pendingMatches;
    } else this.#isFull = false;
    this.#pending = [];
    this.#pendingMatches = 0;
    return !this.#isFull;
  }

  result(): FoundText {
    this.finish(true);
    const { timedOut, skipped, leftOut } = this;
    const files = this.#task.paths.length;
    return { lines: this.#lines, matches: this.#matches, truncated: this.#isFull, timedOut, files, skipped, leftOut };
  }
}

import { firstUnits, splitsPair } from '../../values/surrogate-pairs.js';
import { named, PatternError } from '../access/errors.js';
import type { AllowedRoots } from '../access/roots.js';

/** One line of a result. */
export interface FoundLine {
  /** Canonical path of a regular file inside the roots. */
  readonly path: string;
  /** From 1. */
  readonly line: number;
  /** Without its line end; bytes that are not UTF-8 replaced. At most 2,000 UTF-16 units, those around the first match. */
  readonly text: string;
  /** Whether the line only surrounds a match. */
  readonly isContext: boolean;
  /** Whether `text` is only a part of the line. */
  readonly cut: boolean;
}

/** What a search found. */
export interface FoundText {
  /** File by file, lines rising, no line twice; context included. */
  readonly lines: readonly FoundLine[];
  /** Matching lines among them. */
  readonly matches: number;
  /** Whether the limit left matches out. */
  readonly truncated: boolean;
  readonly timedOut: boolean;
  /** Files that path and glob chose, whether they were searched or not. */
  readonly files: number;
  /** Matching lines that are too long to handle, and files whose names are not UTF-8. */
  readonly skipped: number;
  /** Files that were not searched: the large ones, and a binary one if it is the one that was named. */
  readonly leftOut: readonly LeftOutFile[];
}

/** A file that a search leaves out. */
export interface LeftOutFile {
  /** Canonical. */
  readonly path: string;
  readonly bytes: number;
  readonly why: 'too-large' | 'binary';
}

/** What both ways of searching are told. */
export interface SearchTask {
  readonly roots: AllowedRoots;
  /** Canonical paths of the files that are searched, in the order of the result. */
  readonly paths: readonly string[];
  /** The one file that was named, as the agent gave it; undefined where a folder was. That file must open, of a folder's those that do are searched. */
  readonly named: string | undefined;
  readonly pattern: string;
  readonly literal: boolean;
  readonly ignoreCase: boolean;
  readonly context: number;
  readonly limit: number;
  /** When the search ends, on the clock of `performance`. */
  readonly deadline: number;
  readonly signal: AbortSignal | undefined;
}

/** Files of more bytes are not searched. */
export const LARGEST_SEARCHED = 64 * 1024 * 1024;
const LONGEST_TEXT = 2000;

/** The error for a regular expression, with the reason in the words of whoever refused it. */
export function invalidRegex(pattern: string, why: string, cause?: unknown): PatternError {
  const advice = 'correct it, escape special characters with "\\", or search for it as plain text (literal)';
  return new PatternError('invalid-regex', `the pattern ${named(pattern)} cannot be searched for: ${why}; ${advice}`, { cause });
}

/** A line of at most 2,000 units: from its beginning, or around a match that lies further on. */
function cutLine(text: string, matchStart: number): { readonly text: string; readonly cut: boolean } {
  if (text.length <= LONGEST_TEXT) return { text, cut: false };
  const from = matchStart < LONGEST_TEXT / 2 ? 0 : Math.min(matchStart - LONGEST_TEXT / 4, text.length - LONGEST_TEXT);
  return { text: firstUnits(text.slice(splitsPair(text, from) ? from + 1 : from), LONGEST_TEXT), cut: true };
}

/**
 * Collects the lines of a search file by file, up to the limit of matches.
 * A file's lines count only once it is finished, so that a file that turns out to be binary leaves none.
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

  /** Takes a line of the current file; a match over the limit is refused with false, its leading context taken back, and so is what follows it. */
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

  /** Ends the current file, keeping its lines or not; false where what is kept is all that the limit allows, and there was more. */
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

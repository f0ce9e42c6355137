import { stat } from 'node:fs/promises';
import { posix } from 'node:path';
import type { CanonicalPath } from '../../objects/ids.js';
import { sourceErrorFrom } from '../access/errors.js';
import { regularInside } from '../access/regular-files.js';
import type { AllowedRoots } from '../access/roots.js';
import { compileGlob } from './glob.js';
import { ripgrepPath } from './ripgrep.js';
import { searchInProcess } from './search-in-process.js';
import { type FoundText, invalidRegex, type SearchTask } from './search-task.js';
import { searchWithRipgrep } from './search-with-ripgrep.js';

/** What is searched for, and how. */
export interface SearchOptions {
  /** A regular expression of linear time: no look-around, no back-references. */
  readonly pattern: string;
  /** Take the pattern as plain text. */
  readonly literal?: boolean;
  readonly ignoreCase?: boolean;
  /** Which files to search, as {@link compileGlob} has it. */
  readonly glob?: string | undefined;
  /** Lines shown around each match; 0 if left out. */
  readonly context?: number;
  /** Matching lines at most; 100 if left out. */
  readonly limit?: number;
  /** Milliseconds; 30,000 if left out. What was found until then is returned. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** The search program; found by itself if left out, `null` for searching in this process. */
  readonly ripgrep?: string | null | undefined;
  /** The path as the agent gave it, for messages. */
  readonly shown?: string;
}

const MOST_CONTEXT = 1000;

/**
 * Searches the lines of a file, or of the files below a folder,.
 * What is walked: see {@link walkFiles}; a file that is named itself is searched whatever rules ignore it. Files with a NUL are skipped.
 * Throws {@link PatternError} and {@link SourceError}; rejects with the signal's reason on abort.
 */
export async function searchText(roots: AllowedRoots, path: CanonicalPath, options: SearchOptions): Promise<FoundText> {
  options.signal?.throwIfAborted();
  const { pattern, shown = path } = options;
  requirePattern(pattern);
  const isFolder = await stat(path).then(
    (stats) => stats.isDirectory(),
    (error: unknown) => {
      throw sourceErrorFrom(error, shown);
    },
  );
  const task: SearchTask = {
    roots,
    folder: isFolder ? path : posix.dirname(path),
    file: isFolder ? undefined : posix.basename(path),
    pattern,
    literal: options.literal ?? false,
    ignoreCase: options.ignoreCase ?? false,
    glob: options.glob,
    accept: options.glob === undefined ? () => true : compileGlob(options.glob),
    context: Math.min(Math.max(0, Math.trunc(options.context ?? 0)), MOST_CONTEXT),
    limit: Math.max(1, Math.trunc(options.limit ?? 100)),
    timeoutMs: options.timeoutMs ?? 30_000,
    signal: options.signal,
    shown,
  };
  const ripgrep = options.ripgrep === undefined ? await ripgrepPath() : (options.ripgrep ?? undefined);
  const found = ripgrep === undefined ? await searchInProcess(task) : await searchWithRipgrep(task, ripgrep);
  return insideOnly(roots, found);
}

function requirePattern(pattern: string): void {
  const why =
    pattern === ''
      ? 'it is empty'
      : /[\0\n]/.test(pattern)
        ? 'it holds a line end or a NUL, and lines are searched one by one'
        : pattern.isWellFormed()
          ? undefined
          : 'it holds half a surrogate pair';
  if (why !== undefined) throw invalidRegex(pattern, why);
}

/** Leaves out files that are not, or no longer, regular ones inside the roots. */
async function insideOnly(roots: AllowedRoots, found: FoundText): Promise<FoundText> {
  const inside = new Set(await regularInside(roots, [...new Set(found.lines.map(({ path }) => path))]));
  const lines = found.lines.filter(({ path }) => inside.has(path));
  return { ...found, lines, matches: lines.filter(({ isContext }) => !isContext).length };
}

import { posix } from 'node:path';
import type { CanonicalPath } from '../../objects/ids.js';
import { HANDLES_HAVE_PATHS, irregularKind, leave, notRegularError, openInside } from '../access/open-inside.js';
import type { AllowedRoots } from '../access/roots.js';
import { compileGlob } from './glob.js';
import { ripgrepPath } from './ripgrep.js';
import { searchInProcess } from './search-in-process.js';
import { type FoundText, invalidRegex, type SearchTask } from './search-task.js';
import { searchWithRipgrep } from './search-with-ripgrep.js';
import { walkFiles } from './walk.js';

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
const DEFAULT_TIMEOUT = 30_000;

/**
 * Searches the lines of a regular file, or of the files below a folder.
 * What is walked: see {@link walkFiles}; a file that is named itself is searched whatever rules ignore it. Files with a NUL are skipped, but for UTF-16 with
 * its byte order mark. Every file is
 * opened first and found to be a regular one inside the roots, and what was opened is searched.
 * Throws {@link PatternError} and {@link SourceError}, `not-regular` for a named pipe, socket or device; rejects with the signal's reason on abort.
 */
export async function searchText(roots: AllowedRoots, path: CanonicalPath, options: SearchOptions): Promise<FoundText> {
  options.signal?.throwIfAborted();
  const { pattern, signal, shown = path, timeoutMs = DEFAULT_TIMEOUT } = options;
  requirePattern(pattern);
  const deadline = performance.now() + timeoutMs;
  const accept = options.glob === undefined ? () => true : compileGlob(options.glob);
  const isFolder = await isSearchedFolder(roots, path, shown);
  const walked = isFolder ? await walkFiles(roots, path, { accept, timeoutMs, signal, shown }) : undefined;
  const task: SearchTask = {
    roots,
    paths: walked?.paths.map((one) => posix.join(path, one)) ?? (accept(posix.basename(path)) ? [path] : []),
    named: isFolder ? undefined : shown,
    pattern,
    literal: options.literal ?? false,
    ignoreCase: options.ignoreCase ?? false,
    context: Math.min(Math.max(0, Math.trunc(options.context ?? 0)), MOST_CONTEXT),
    limit: Math.max(1, Math.trunc(options.limit ?? 100)),
    deadline,
    signal,
  };
  const ripgrep = options.ripgrep === undefined && HANDLES_HAVE_PATHS ? await ripgrepPath() : (options.ripgrep ?? undefined);
  const found = await (ripgrep === undefined ? searchInProcess(task) : searchWithRipgrep(task, ripgrep));
  return {
    ...found,
    timedOut: found.timedOut || walked?.timedOut === true,
    skipped: found.skipped + (walked?.unaddressable ?? 0),
  };
}

/** Whether a folder is searched, and not a regular file; what is neither is refused before anything waits for it. */
async function isSearchedFolder(roots: AllowedRoots, path: CanonicalPath, shown: string): Promise<boolean> {
  const opened = await openInside(roots, path, shown);
  leave(opened);
  const kind = irregularKind(opened.stats);
  if (kind !== undefined && kind !== 'directory') throw notRegularError(kind, shown);
  return kind === 'directory';
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

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

/** The pattern and options of a search. */
export interface SearchOptions {
  /** A linear-time regular expression: no look-around, no back-references. */
  readonly pattern: string;
  /** Treats the pattern as plain text. */
  readonly literal?: boolean;
  readonly ignoreCase?: boolean;
  /** The files to search, as for {@link compileGlob}. */
  readonly glob?: string | undefined;
  /** Lines of context around each match; default 0. */
  readonly context?: number;
  /** Maximum matching lines; default 100. */
  readonly limit?: number;
  /** Time limit in milliseconds; default 30,000. The matches found until then are returned. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** The search program; located automatically by default, `null` to search in this process. */
  readonly ripgrep?: string | null | undefined;
  /** The path as the agent gave it, for messages. */
  readonly shown?: string;
}

const MOST_CONTEXT = 1000;
const DEFAULT_TIMEOUT = 30_000;

/**
 * Searches the lines of a regular file, or of the files below a folder. For the files of a folder
 * see {@link walkFiles}; a named file is searched even if it is ignored. Files with a NUL are
 * skipped, except UTF-16 with its byte order mark. Every file is opened first and verified to be a
 * regular one inside the roots; the opened file is searched. Throws {@link PatternError} and {@link
 * SourceError}, `not-regular` for a named pipe, socket or device. Rejects with the signal's reason
 * on abort.
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
  const ripgrep =
    options.ripgrep === undefined && HANDLES_HAVE_PATHS ? await ripgrepPath() : (options.ripgrep ?? undefined);
  const found = await (ripgrep === undefined ? searchInProcess(task) : searchWithRipgrep(task, ripgrep));
  return {
    ...found,
    timedOut: found.timedOut || walked?.timedOut === true,
    skipped: found.skipped + (walked?.unaddressable ?? 0),
  };
}

/**
 * Returns whether the path is a folder rather than a regular file. Anything else is rejected at
 * once.
 */
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
        ? 'it contains a line end or a NUL, but lines are searched one by one'
        : pattern.isWellFormed()
          ? undefined
          : 'it holds half a surrogate pair';
  if (why !== undefined) throw invalidRegex(pattern, why);
}

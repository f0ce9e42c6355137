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
  /** A glob that selects the files to search; see {@link compileGlob}. */
  readonly glob?: string | undefined;
  /** Lines of context around each match; default 0. */
  readonly context?: number;
  /** Maximum matching lines; default 100. */
  readonly limit?: number;
  /** Time limit in milliseconds; default 30,000. The matches found until then are returned. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** The path of ripgrep; default: it is looked up. `null` searches without ripgrep. */
  readonly ripgrep?: string | null | undefined;
  /** The path as the agent gave it, for messages. */
  readonly shown?: string;
}

const MOST_CONTEXT = 1000;
const DEFAULT_TIMEOUT = 30_000;

/**
 * Searches the lines of a regular file, or of the files below a folder. {@link walkFiles} decides
 * which files of a folder are searched. A file given as `path` is searched even if it is ignored.
 * Files with a NUL are skipped, unless a byte order mark shows that they are UTF-16. Opens each
 * file, checks that it is a regular file inside the roots, and searches it through the same handle.
 * So a path that changes during the search cannot lead outside. Rejects with the signal's reason on
 * abort.
 * @throws {PatternError}
 * @throws {SourceError} `not-regular` for a named pipe, socket or device
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

/** Returns true for a folder and false for a regular file. Throws for anything else. */
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
        ? 'it contains a line break or a NUL, and no searched line does'
        : pattern.isWellFormed()
          ? undefined
          : 'it contains a lone surrogate';
  if (why !== undefined) throw invalidRegex(pattern, why);
}

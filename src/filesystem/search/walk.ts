import { isUtf8 } from 'node:buffer';
import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { posix } from 'node:path';
import { SourceError } from '../access/errors.js';
import { entryPath, openFolderInside } from '../access/open-inside.js';
import { regularInside } from '../access/regular-files.js';
import type { AllowedRoots } from '../access/roots.js';
import { compileGlob } from './glob.js';
import { IgnoreRules, turnTaker } from './ignore-rules.js';
import { ripgrepPath, runProgram, walkArgs } from './ripgrep.js';

/** How a folder is walked. */
export interface WalkOptions {
  /** Which files to keep, by their path relative to the folder; all if left out. */
  readonly accept?: (relativePath: string) => boolean;
  /** Files kept at most; 200,000 if left out. */
  readonly limit?: number;
  /** Milliseconds; 30,000 if left out. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** The search program; found by itself if left out, `null` for walking in this process. */
  readonly ripgrep?: string | null | undefined;
  /** The folder as the agent gave it, for messages. */
  readonly shown?: string;
}

/** The files below a folder. */
export interface Walked {
  /** Relative to the folder, depth first, names in the order of their bytes. */
  readonly paths: readonly string[];
  /** Whether the limit left files out. */
  readonly truncated: boolean;
  readonly timedOut: boolean;
  /** Files whose names are not UTF-8 and that no path can name. */
  readonly unaddressable: number;
}

const DEFAULT_LIMIT = 200_000;
const DEFAULT_TIMEOUT = 30_000;

/**
 * Lists the regular files below a canonical folder inside the roots: hidden ones included; `.git`, what a `.gitignore` excludes, and
 * everything behind a symbolic link left out. Folders that cannot be read count as empty.
 * Throws {@link SourceError} for the folder itself; rejects with the signal's reason on abort.
 */
export async function walkFiles(roots: AllowedRoots, folder: string, options: WalkOptions = {}): Promise<Walked> {
  options.signal?.throwIfAborted();
  const ripgrep = options.ripgrep === undefined ? await ripgrepPath() : (options.ripgrep ?? undefined);
  const collector = new PathCollector(options);
  const walk = { roots, folder, collector, options };
  await (ripgrep === undefined ? walkInProcess(walk) : walkWithRipgrep(walk, ripgrep));
  return collector.result();
}

/** Collects accepted paths up to the limit. */
class PathCollector {
  readonly #paths: string[] = [];
  readonly #options: WalkOptions;
  #truncated = false;
  unaddressable = 0;
  timedOut = false;

  constructor(options: WalkOptions) {
    this.#options = options;
  }

  /** Takes a path as bytes; false once the limit is passed. */
  take(bytes: Buffer): boolean {
    if (!isUtf8(bytes)) {
      this.unaddressable += 1;
      return true;
    }
    const path = bytes.toString('utf8');
    if (this.#options.accept !== undefined && !this.#options.accept(path)) return true;
    if (this.#paths.length >= (this.#options.limit ?? DEFAULT_LIMIT)) {
      this.#truncated = true;
      return false;
    }
    this.#paths.push(path);
    return true;
  }

  result(): Walked {
    return { paths: this.#paths, truncated: this.#truncated, timedOut: this.timedOut, unaddressable: this.unaddressable };
  }
}

/** One walk under way. */
interface Walk {
  readonly roots: AllowedRoots;
  readonly folder: string;
  readonly collector: PathCollector;
  readonly options: WalkOptions;
}

async function walkWithRipgrep({ roots, folder, collector, options }: Walk, binary: string): Promise<void> {
  const { handle } = await openFolderInside(roots, folder, options.shown);
  try {
    const outcome = await runProgram({
      binary,
      args: ['--files', '--null', ...(await walkArgs(folder)), '--', './'],
      cwd: entryPath(handle, folder, ''),
      separator: 0,
      take: (record) => collector.take(record.subarray(2)),
      timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT,
      signal: options.signal,
    });
    collector.timedOut = outcome.ended === 'timed-out';
    if (outcome.stderr !== '' && outcome.exitCode === 2) {
      throw new SourceError('io', `the folder could not be listed: ${outcome.stderr.split('\n', 1)[0]}`, { path: folder });
    }
  } finally {
    await handle.close();
  }
}

async function walkInProcess({ roots, folder: top, collector, options }: Walk): Promise<void> {
  const deadline = performance.now() + (options.timeoutMs ?? DEFAULT_TIMEOUT);
  const folderEntries = async (folder: string, shown?: string): Promise<readonly Dirent<Buffer>[]> => {
    const { handle } = await openFolderInside(roots, folder, shown);
    try {
      return (await readdir(entryPath(handle, folder, ''), { withFileTypes: true, encoding: 'buffer' })).sort((a, b) =>
        Buffer.compare(a.name, b.name),
      );
    } finally {
      await handle.close();
    }
  };
  const takeTurns = turnTaker();
  const visit = async (folder: string, entries: readonly Dirent<Buffer>[], rules: IgnoreRules): Promise<boolean> => {
    for (const entry of entries) {
      await takeTurns();
      options.signal?.throwIfAborted();
      if (performance.now() > deadline) {
        collector.timedOut = true;
        return false;
      }
      const path = posix.join(folder, entry.name.toString('utf8'));
      if (!(entry.isFile() || entry.isDirectory()) || rules.ignores(path, entry.isDirectory())) continue;
      if (entry.isFile()) {
        const prefix = Buffer.from(folder === top ? '' : `${posix.relative(top, folder)}/`);
        if (!collector.take(Buffer.concat([prefix, entry.name]))) return false;
      } else if (isUtf8(entry.name)) {
        const below = await folderEntries(path).catch(() => []);
        if (!(await visit(path, below, await rules.enter(path)))) return false;
      } else collector.unaddressable += 1;
    }
    return true;
  };
  await visit(top, await folderEntries(top, options.shown), await IgnoreRules.load(top));
}

/** What a glob found below a folder. */
export interface FoundFiles {
  /** Canonical paths of regular files inside the roots, depth first, names in the order of their bytes. */
  readonly paths: readonly string[];
  readonly truncated: boolean;
  readonly timedOut: boolean;
  /** Files whose names are not UTF-8 and that no path can name. */
  readonly unaddressable: number;
}

const FOUND_LIMIT = 1000;

/**
 * Finds files by a glob below a canonical folder; see {@link compileGlob} for the pattern and {@link walkFiles} for what is walked.
 * `limit` is 1,000 if left out. Throws {@link PatternError} `invalid-glob` and {@link SourceError} for the folder.
 */
export async function findFiles(
  roots: AllowedRoots,
  folder: string,
  { pattern, ...options }: Omit<WalkOptions, 'accept'> & { readonly pattern: string },
): Promise<FoundFiles> {
  const walked = await walkFiles(roots, folder, { ...options, limit: options.limit ?? FOUND_LIMIT, accept: compileGlob(pattern) });
  const paths = walked.paths.map((path) => posix.join(folder, path));
  return { ...walked, paths: await regularInside(roots, paths) };
}

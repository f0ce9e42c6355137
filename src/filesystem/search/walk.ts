import { isUtf8 } from 'node:buffer';
import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { posix } from 'node:path';
import { entryPath, leave, openFolderInside } from '../access/open-inside.js';
import type { AllowedRoots } from '../access/roots.js';
import { compileGlob } from './glob.js';
import { IgnoreRules, ownRules, turnTaker } from './ignore-rules.js';

/** Options for walking a folder. */
export interface WalkOptions {
  /** Selects files by their path relative to the folder; default all. */
  readonly accept?: (relativePath: string) => boolean;
  /** Maximum number of files; default 200,000. */
  readonly limit?: number;
  /** Time limit in milliseconds; default 30,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** The folder as the agent gave it, for messages. */
  readonly shown?: string;
}

/** The files below a folder. */
export interface Walked {
  /**
   * Paths relative to the folder; {@link findFiles} returns canonical paths. Depth first, names in
   * byte order.
   */
  readonly paths: readonly string[];
  /** Whether the limit omitted files. */
  readonly truncated: boolean;
  readonly timedOut: boolean;
  /** Number of files whose names are not UTF-8, which no path can express. */
  readonly unaddressable: number;
}

const DEFAULT_LIMIT = 200_000;
const DEFAULT_TIMEOUT = 30_000;

/** One folder of a walk: its entries in byte order of their names, and its ignore rules. */
interface Entered {
  readonly folder: string;
  /** The prefix of its entries' paths, relative to the walked folder. */
  readonly prefix: string;
  readonly entries: readonly Dirent<Buffer>[];
  readonly rules: IgnoreRules;
}

/** A running walk. */
class Walk {
  readonly #roots: AllowedRoots;
  readonly #options: WalkOptions;
  readonly #deadline: number;
  readonly #takeTurns = turnTaker();
  readonly #paths: string[] = [];
  #truncated = false;
  #timedOut = false;
  #unaddressable = 0;

  constructor(roots: AllowedRoots, options: WalkOptions) {
    this.#roots = roots;
    this.#options = options;
    this.#deadline = performance.now() + (options.timeoutMs ?? DEFAULT_TIMEOUT);
  }

  /**
   * Reads entries and rules through the handle of the folder that was verified to lie inside the
   * roots. So a change of the folder's name has no effect.
   */
  async enter(folder: string, prefix: string, above: IgnoreRules | undefined): Promise<Entered> {
    const opened = await openFolderInside(this.#roots, folder, above === undefined ? this.#options.shown : folder);
    try {
      const at = entryPath(opened.handle, folder, '');
      const entries = await readdir(at, { withFileTypes: true, encoding: 'buffer' });
      entries.sort((a, b) => Buffer.compare(a.name, b.name));
      return {
        folder,
        prefix,
        entries,
        rules: await (above?.enter(folder, ownRules(at, entries)) ?? IgnoreRules.load(folder)),
      };
    } finally {
      leave(opened);
    }
  }

  /** Visits a folder and its subfolders; returns false if the walk ends. */
  async visit({ folder, prefix, entries, rules }: Entered): Promise<boolean> {
    for (const entry of entries) {
      await this.#takeTurns();
      this.#options.signal?.throwIfAborted();
      if (performance.now() > this.#deadline) {
        this.#timedOut = true;
        return false;
      }
      const isFolder = entry.isDirectory();
      if (!(isFolder || entry.isFile())) continue;
      const name = entry.name.toString('utf8');
      const path = folder === '/' ? `/${name}` : `${folder}/${name}`;
      if (rules.ignores(path, isFolder)) continue;
      if (!isUtf8(entry.name)) this.#unaddressable += 1;
      else if (!isFolder) {
        if (!this.#take(prefix + name)) return false;
      } else {
        const below = await this.enter(path, `${prefix}${name}/`, rules).catch(() => undefined);
        if (below !== undefined && !(await this.visit(below))) return false;
      }
    }
    return true;
  }

  #take(path: string): boolean {
    if (this.#options.accept?.(path) === false) return true;
    this.#truncated = this.#paths.length >= (this.#options.limit ?? DEFAULT_LIMIT);
    if (!this.#truncated) this.#paths.push(path);
    return !this.#truncated;
  }

  result(): Walked {
    return {
      paths: this.#paths,
      truncated: this.#truncated,
      timedOut: this.#timedOut,
      unaddressable: this.#unaddressable,
    };
  }
}

/**
 * Lists the regular files below a canonical folder inside the roots, including hidden ones. Omits
 * `.git`, files that a `.gitignore` excludes, and everything behind a symbolic link. Unreadable
 * folders count as empty. Throws {@link SourceError} for the folder itself; rejects with the
 * signal's reason on abort.
 */
export async function walkFiles(roots: AllowedRoots, folder: string, options: WalkOptions = {}): Promise<Walked> {
  options.signal?.throwIfAborted();
  const walk = new Walk(roots, options);
  await walk.visit(await walk.enter(folder, '', undefined));
  return walk.result();
}

const FOUND_LIMIT = 1000;

/**
 * Finds files by a glob below a canonical folder. See {@link compileGlob} for the pattern and
 * {@link walkFiles} for the files. Returns canonical paths; `limit` defaults to 1,000. Throws
 * {@link PatternError} `invalid-glob`, and {@link SourceError} for the folder.
 */
export async function findFiles(
  roots: AllowedRoots,
  folder: string,
  { pattern, ...options }: Omit<WalkOptions, 'accept'> & { readonly pattern: string },
): Promise<Walked> {
  const walked = await walkFiles(roots, folder, {
    ...options,
    limit: options.limit ?? FOUND_LIMIT,
    accept: compileGlob(pattern),
  });
  return { ...walked, paths: walked.paths.map((path) => posix.join(folder, path)) };
}

import { isUtf8 } from 'node:buffer';
import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { posix } from 'node:path';
import { entryPath, leave, openFolderInside } from '../access/open-inside.js';
import type { AllowedRoots } from '../access/roots.js';
import { compileGlob } from './glob.js';
import { IgnoreRules, ownRules, turnTaker } from './ignore-rules.js';

/** How a folder is walked. */
export interface WalkOptions {
  /** Which files to keep, by their path relative to the folder; all if left out. */
  readonly accept?: (relativePath: string) => boolean;
  /** Files kept at most; 200,000 if left out. */
  readonly limit?: number;
  /** Milliseconds; 30,000 if left out. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** The folder as the agent gave it, for messages. */
  readonly shown?: string;
}

/** The files below a folder. */
export interface Walked {
  /** Relative to the folder, or canonical where {@link findFiles} says so; depth first, names in the order of their bytes. */
  readonly paths: readonly string[];
  /** Whether the limit left files out. */
  readonly truncated: boolean;
  readonly timedOut: boolean;
  /** Files whose names are not UTF-8 and that no path can name. */
  readonly unaddressable: number;
}

const DEFAULT_LIMIT = 200_000;
const DEFAULT_TIMEOUT = 30_000;

/** One folder of a walk: its entries in the order of their names' bytes, and the rules that hold in it. */
interface Entered {
  readonly folder: string;
  /** What the paths of its entries begin with, relative to the folder that is walked. */
  readonly prefix: string;
  readonly entries: readonly Dirent<Buffer>[];
  readonly rules: IgnoreRules;
}

/** One walk under way. */
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

  /** Entries and rules are read in the very folder that was found to lie inside the roots, whatever its name leads to meanwhile. */
  async enter(folder: string, prefix: string, above: IgnoreRules | undefined): Promise<Entered> {
    const opened = await openFolderInside(this.#roots, folder, above === undefined ? this.#options.shown : folder);
    try {
      const at = entryPath(opened.handle, folder, '');
      const entries = await readdir(at, { withFileTypes: true, encoding: 'buffer' });
      entries.sort((a, b) => Buffer.compare(a.name, b.name));
      return { folder, prefix, entries, rules: await (above?.enter(folder, ownRules(at, entries)) ?? IgnoreRules.load(folder)) };
    } finally {
      leave(opened);
    }
  }

  /** Visits a folder and what is below it; false where the walk ends. */
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
    return { paths: this.#paths, truncated: this.#truncated, timedOut: this.#timedOut, unaddressable: this.#unaddressable };
  }
}

/**
 * Lists the regular files below a canonical folder inside the roots: hidden ones included; `.git`, what a `.gitignore` excludes, and
 * everything behind a symbolic link left out. Folders that cannot be read count as empty.
 * Throws {@link SourceError} for the folder itself; rejects with the signal's reason on abort.
 */
export async function walkFiles(roots: AllowedRoots, folder: string, options: WalkOptions = {}): Promise<Walked> {
  options.signal?.throwIfAborted();
  const walk = new Walk(roots, options);
  await walk.visit(await walk.enter(folder, '', undefined));
  return walk.result();
}

const FOUND_LIMIT = 1000;

/**
 * Finds files by a glob below a canonical folder; see {@link compileGlob} for the pattern and {@link walkFiles} for what is walked.
 * The paths that it finds are canonical. `limit` is 1,000 if left out. Throws {@link PatternError} `invalid-glob` and {@link SourceError} for the folder.
 */
export async function findFiles(
  roots: AllowedRoots,
  folder: string,
  { pattern, ...options }: Omit<WalkOptions, 'accept'> & { readonly pattern: string },
): Promise<Walked> {
  const walked = await walkFiles(roots, folder, { ...options, limit: options.limit ?? FOUND_LIMIT, accept: compileGlob(pattern) });
  return { ...walked, paths: walked.paths.map((path) => posix.join(folder, path)) };
}

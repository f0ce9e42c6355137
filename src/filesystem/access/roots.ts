import { isUtf8 } from 'node:buffer';
import { lstat, readlink, realpath, stat } from 'node:fs/promises';
import { posix, resolve } from 'node:path';
import { type CanonicalPath, canonicalPath } from '../../objects/ids.js';
import { systemCode } from '../../process/system-error.js';
import { named, SourceError, sourceErrorFrom } from './errors.js';
import { isWithin } from './mounts.js';
import { fromNative, refusedPath, toNative } from './native-path.js';

/** A path verified to lie inside the allowed roots. */
export interface ResolvedPath {
  /** The absolute path with every symbolic link resolved. */
  readonly path: CanonicalPath;
  /** False for a file or folder that could be created there. */
  readonly exists: boolean;
}

/** Options for resolving a path. */
export interface ResolveOptions {
  /** The start of relative paths; only required for those. */
  readonly cwd?: string;
  /** Whether a missing path is rejected with `not-found`; default true. */
  readonly mustExist?: boolean;
  /** The path as the agent gave it, for messages; defaults to the path. */
  readonly shown?: string;
}

/** A root or a mount point that sources depend on. */
interface Anchor {
  readonly path: string;
  /** Device when the roots were opened; `undefined` if the place did not exist then. */
  readonly device: bigint | undefined;
}

/** Folders without real files. No root includes them, unless the root lies in one of them. */
const KERNEL_FOLDERS = ['/proc', '/sys', '/dev'] as const;
const MOST_LINKS = 40;
const LONGEST_PATH = 4096;

const outside = (shown: string) =>
  new SourceError('outside-roots', `${named(shown)} is outside the allowed folders; use a path inside them`, {
    path: shown,
  });

/** Returns the error for a path whose root or mount is absent. */
export const awayError = (shown: string) =>
  new SourceError('unreachable', `${named(shown)} cannot be reached: its folder or mount is absent`, {
    path: shown,
  });

/** Resolves every link of a path. If that fails, returns undefined with the failure. */
async function tryRealpath(
  path: string,
  shown: string,
): Promise<{ readonly real: string } | { readonly error: unknown }> {
  let bytes: Buffer;
  try {
    bytes = await realpath(toNative(path), 'buffer');
  } catch (error) {
    return { error };
  }
  if (!isUtf8(bytes)) {
    throw new SourceError(
      'invalid-path',
      `${named(shown)} leads through a name that is not UTF-8 and cannot be addressed`,
      {
        path: shown,
      },
    );
  }
  return { real: fromNative(bytes.toString('utf8')) };
}

async function deviceOf(path: string): Promise<bigint | undefined> {
  return (await stat(toNative(path), { bigint: true }).catch(() => undefined))?.dev;
}

/**
 * The folders that an agent may use. Rejects all other paths, after resolving their links. A hard
 * link inside a root counts as inside, even if its file also has a name outside. A path outside
 * gives the same answer whether it exists or not, and no message reveals the target of a link.
 */
export class AllowedRoots {
  /** The canonical roots. */
  readonly roots: readonly CanonicalPath[];
  readonly #anchors: readonly Anchor[];
  readonly #longestFirst: readonly CanonicalPath[];

  private constructor(roots: readonly CanonicalPath[], anchors: readonly Anchor[]) {
    this.roots = roots;
    this.#longestFirst = [...roots].sort((a, b) => b.length - a.length);
    this.#anchors = anchors;
  }

  /**
   * Opens existing folders, absolute or relative to the working directory. `mountPoints` are
   * further places: while one is absent, a missing file below it counts as unreachable, not deleted
   * (decision C5). Throws {@link SourceError} for a root that does not exist or is not a folder,
   * and for an empty list.
   */
  static async open(roots: readonly string[], mountPoints: readonly string[] = []): Promise<AllowedRoots> {
    if (roots.length === 0)
      throw new SourceError('invalid-path', 'no allowed folder is given; name at least one', { path: '' });
    const opened: CanonicalPath[] = [];
    for (const root of roots) {
      if (root === '' || root.includes('\0'))
        throw new SourceError('invalid-path', `${named(root)} is not a folder`, { path: root });
      const found = await tryRealpath(fromNative(resolve(toNative(root))), root);
      if ('error' in found) throw sourceErrorFrom(found.error, root);
      if (!(await stat(toNative(found.real))).isDirectory()) {
        throw new SourceError('not-regular', `the allowed folder ${named(root)} is not a folder`, { path: root });
      }
      opened.push(canonicalPath(found.real));
    }
    const unique = [...new Set(opened)];
    const places = [...new Set([...unique, ...mountPoints])].sort((a, b) => b.length - a.length);
    const anchors = await Promise.all(places.map(async (path) => ({ path, device: await deviceOf(path) })));
    return new AllowedRoots(unique, anchors);
  }

  /** Returns whether a canonical path lies inside a root. Compares only the path. */
  holds(path: string): boolean {
    return this.rootOf(path) !== undefined;
  }

  /** Returns the longest root that contains a canonical path. */
  rootOf(path: string): CanonicalPath | undefined {
    const kernel = KERNEL_FOLDERS.find((folder) => isWithin(path, folder));
    return this.#longestFirst.find((root) => isWithin(path, root) && (kernel === undefined || isWithin(root, kernel)));
  }

  /**
   * Returns the real path of `path` inside the roots. Throws {@link SourceError}: `outside-roots`,
   * `unreachable` (its root or mount is absent), `not-found`, `invalid-path`, `loop`,
   * `no-permission`, `io`. With `mustExist: false`, a missing file or folder resolves to its future
   * path, with its parents' links resolved. A dangling link stays rejected.
   */
  async resolve(path: string, options: ResolveOptions = {}): Promise<ResolvedPath> {
    const shown = options.shown ?? path;
    const absolute = absolutePath(path, options.cwd, shown);
    if (KERNEL_FOLDERS.some((folder) => isWithin(absolute, folder)) && !this.holds(absolute)) throw outside(shown);
    const resolved = await this.#follow(absolute, shown, 0);
    if (!resolved.exists && (options.mustExist ?? true)) {
      if (await this.#isAway(absolute)) throw awayError(shown);
      throw new SourceError('not-found', `${named(shown)} does not exist`, { path: shown });
    }
    return resolved;
  }

  async #follow(absolute: string, shown: string, links: number): Promise<ResolvedPath> {
    const found = await tryRealpath(absolute, shown);
    if ('error' in found) return this.#missing({ absolute, failure: found.error, links }, shown);
    if (!this.holds(found.real)) throw outside(shown);
    return { path: canonicalPath(found.real), exists: true };
  }

  /** Judges an unresolvable path by its deepest resolvable parent. */
  async #missing(
    { absolute, failure, links }: { readonly absolute: string; readonly failure: unknown; readonly links: number },
    shown: string,
  ): Promise<ResolvedPath> {
    const errno = systemCode(failure);
    let parent = absolute;
    let real: string | undefined;
    while (real === undefined) {
      if (parent === '/') throw sourceErrorFrom(failure, shown);
      parent = posix.dirname(parent);
      const found = await tryRealpath(parent, shown);
      if ('real' in found) real = found.real;
    }
    if (!this.holds(real)) throw (await this.#isAway(absolute)) ? awayError(shown) : outside(shown);
    if (errno !== 'ENOENT') throw sourceErrorFrom(failure, shown);
    const rest = absolute.slice(parent === '/' ? 1 : parent.length + 1);
    await this.#refuseDangling({ parent: real, rest, links }, shown);
    return { path: canonicalPath(posix.join(real, rest)), exists: false };
  }

  /**
   * Rejects a dangling link as outside or as missing, depending on its target. The error never
   * reveals the target.
   */
  async #refuseDangling(
    { parent, rest, links }: { readonly parent: string; readonly rest: string; readonly links: number },
    shown: string,
  ): Promise<void> {
    const name = rest.split('/', 1)[0] ?? rest;
    const link = posix.join(parent, name);
    const found = await lstat(toNative(link)).catch(() => undefined);
    if (found?.isSymbolicLink() !== true) return;
    if (links >= MOST_LINKS)
      throw new SourceError('loop', `${named(shown)} runs through a loop of symbolic links`, { path: shown });
    const target = fromNative(await readlink(toNative(link)).catch(() => ''));
    await this.#follow(posix.resolve(parent, target, rest.slice(name.length + 1)), shown, links + 1);
    throw new SourceError(
      'not-found',
      `${named(shown)} is or runs through a symbolic link to something that does not exist`,
      {
        path: shown,
      },
    );
  }

  /** Returns whether a path lies below an absent root or mount. */
  async #isAway(absolute: string): Promise<boolean> {
    return this.#anchorOf(absolute) !== undefined && !(await this.anchorPresent(absolute));
  }

  #anchorOf(path: string): Anchor | undefined {
    return this.#anchors.find((one) => isWithin(path, one.path));
  }

  /**
   * Returns whether the root or mount that contains a canonical path is present and on the same
   * device (decision C5). If not, a missing file below it is unreachable, not deleted.
   */
  async anchorPresent(path: string): Promise<boolean> {
    const anchor = this.#anchorOf(path);
    if (anchor === undefined) return false;
    const device = await deviceOf(anchor.path);
    return device !== undefined && (anchor.device === undefined || anchor.device === device);
  }
}

/** Makes a path absolute and normalises it by name. Throws {@link SourceError} `invalid-path`. */
export function absolutePath(given: string, cwd: string | undefined, shown: string = given): CanonicalPath {
  const path = fromNative(given);
  if (path === '') throw new SourceError('invalid-path', 'the path is empty; name a file or a folder', { path: shown });
  if (path.includes('\0'))
    throw new SourceError('invalid-path', `the path ${named(shown)} holds a NUL character`, { path: shown });
  if (!path.isWellFormed()) {
    throw new SourceError(
      'invalid-path',
      `the path ${named(shown)} contains a lone surrogate; no file has such a name`,
      { path: shown },
    );
  }
  if (!posix.isAbsolute(path) && (cwd === undefined || !posix.isAbsolute(cwd))) {
    throw new SourceError('invalid-path', `the path ${named(shown)} is relative and no folder to start from is known`, {
      path: shown,
    });
  }
  const absolute = posix.isAbsolute(path) ? path : posix.join(cwd ?? '/', path);
  if (absolute.length > LONGEST_PATH) {
    throw new SourceError('invalid-path', `the path ${named(shown)} is longer than ${LONGEST_PATH} characters`, {
      path: shown,
    });
  }
  const canonical = canonicalPath(absolute);
  const refused = refusedPath(canonical);
  if (refused === undefined) return canonical;
  throw new SourceError('invalid-path', `${named(shown)} cannot be a file: ${refused}; use another name`, {
    path: shown,
  });
}

import { posix } from 'node:path';
import { regularInside } from '../access/regular-inside.js';
import type { AllowedRoots } from '../access/roots.js';
import { compileGlob } from './glob.js';
import { type WalkOptions, walkFiles } from './walk.js';

/** What a glob found below a folder. */
export interface FoundFiles {
  /** Canonical paths of regular files inside the roots, depth first, names in the order of their bytes. */
  readonly paths: readonly string[];
  readonly truncated: boolean;
  readonly timedOut: boolean;
  /** Files whose names are not UTF-8 and that no path can name. */
  readonly unaddressable: number;
}

const DEFAULT_LIMIT = 1000;

/**
 * Finds files by a glob below a canonical folder; see {@link compileGlob} for the pattern and {@link walkFiles} for what is walked.
 * `limit` is 1,000 if left out. Throws {@link PatternError} `invalid-glob` and {@link SourceError} for the folder.
 */
export async function findFiles(
  roots: AllowedRoots,
  folder: string,
  pattern: string,
  options: Omit<WalkOptions, 'accept'> = {},
): Promise<FoundFiles> {
  const walked = await walkFiles(roots, folder, { ...options, limit: options.limit ?? DEFAULT_LIMIT, accept: compileGlob(pattern) });
  const paths = walked.paths.map((path) => posix.join(folder, path));
  return { ...walked, paths: await regularInside(roots, paths) };
}

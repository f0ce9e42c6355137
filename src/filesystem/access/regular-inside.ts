import { lstat, realpath } from 'node:fs/promises';
import type { AllowedRoots } from './roots.js';

/** Whether a canonical path is an existing regular file inside the roots, reached without links (decision C7). Never throws. */
export async function isRegularInside(roots: AllowedRoots, path: string): Promise<boolean> {
  if (!roots.holds(path)) return false;
  try {
    const [stats, real] = await Promise.all([lstat(path), realpath(path)]);
    return stats.isFile() && real === path;
  } catch {
    return false;
  }
}

/** The paths of a list that {@link isRegularInside} accepts, in their order. */
export async function regularInside(roots: AllowedRoots, paths: readonly string[]): Promise<readonly string[]> {
  const accepted: string[] = [];
  // In portions: thousands of calls at once would only queue up.
  for (let at = 0; at < paths.length; at += 256) {
    const portion = paths.slice(at, at + 256);
    const regular = await Promise.all(portion.map((path) => isRegularInside(roots, path)));
    accepted.push(...portion.filter((_, index) => regular[index]));
  }
  return accepted;
}

import { lstat, realpath } from 'node:fs/promises';
import type { AllowedRoots } from './roots.js';

/** A regular file and when it was last modified, in whole milliseconds. */
export interface DatedFile {
  readonly path: string;
  readonly mtimeMs: number;
}

async function datedFile(roots: AllowedRoots, path: string): Promise<DatedFile | undefined> {
  if (!roots.holds(path)) return undefined;
  try {
    const [stats, real] = await Promise.all([lstat(path, { bigint: true }), realpath(path)]);
    return stats.isFile() && real === path ? { path, mtimeMs: Number(stats.mtimeNs / 1_000_000n) } : undefined;
  } catch {
    return undefined;
  }
}

/** The existing regular files inside the roots among some canonical paths (decision C7), in their order; never throws. */
export async function datedFiles(roots: AllowedRoots, paths: readonly string[]): Promise<readonly DatedFile[]> {
  const found: DatedFile[] = [];
  // In portions: thousands of calls at once would only queue up.
  for (let at = 0; at < paths.length; at += 256) {
    const portion = await Promise.all(paths.slice(at, at + 256).map((path) => datedFile(roots, path)));
    found.push(...portion.filter((file) => file !== undefined));
  }
  return found;
}

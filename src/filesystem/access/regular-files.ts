import { lstat, realpath } from 'node:fs/promises';
import { posix } from 'node:path';
import type { AllowedRoots } from './roots.js';

/** A regular file and when it was last modified, in whole milliseconds. */
export interface DatedFile {
  readonly path: string;
  readonly mtimeMs: number;
}

/** Whether a folder is named by its real path, so that a regular file in it is, too. */
async function isReal(folder: string): Promise<boolean> {
  try {
    return (await realpath(folder)) === folder;
  } catch {
    return false;
  }
}

async function datedFile(path: string): Promise<DatedFile | undefined> {
  try {
    const stats = await lstat(path);
    return stats.isFile() ? { path, mtimeMs: Math.floor(stats.mtimeMs) } : undefined;
  } catch {
    return undefined;
  }
}

/** The existing regular files inside the roots among some canonical paths (decision C7), in their order; never throws. */
export async function datedFiles(roots: AllowedRoots, paths: readonly string[]): Promise<readonly DatedFile[]> {
  const found: DatedFile[] = [];
  const folders = new Map<string, Promise<boolean>>();
  const dated = async (path: string): Promise<DatedFile | undefined> => {
    if (!roots.holds(path)) return undefined;
    const folder = posix.dirname(path);
    const real = folders.get(folder) ?? isReal(folder);
    folders.set(folder, real);
    return (await real) ? datedFile(path) : undefined;
  };
  // In portions: thousands of calls at once would only queue up.
  for (let at = 0; at < paths.length; at += 256) {
    const portion = await Promise.all(paths.slice(at, at + 256).map(dated));
    found.push(...portion.filter((file) => file !== undefined));
  }
  return found;
}

/** The paths of the {@link datedFiles} among some canonical paths. */
export async function regularInside(roots: AllowedRoots, paths: readonly string[]): Promise<readonly string[]> {
  return (await datedFiles(roots, paths)).map(({ path }) => path);
}

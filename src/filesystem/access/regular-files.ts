import { lstat } from 'node:fs/promises';
import { posix } from 'node:path';
import { entryPath, leave, openFolderInside } from './open-inside.js';
import type { AllowedRoots } from './roots.js';

/** A regular file and its last modification in whole milliseconds. */
export interface DatedFile {
  readonly path: string;
  readonly mtimeMs: number;
}

/**
 * Returns the regular files of one folder among some of its names. Checks them through the handle
 * of the folder that was verified to lie inside the roots.
 */
async function datedIn(
  roots: AllowedRoots,
  folder: string,
  paths: readonly string[],
): Promise<readonly (DatedFile | undefined)[]> {
  const opened = await openFolderInside(roots, folder).catch(() => undefined);
  if (opened === undefined) return [];
  const dated = async (path: string): Promise<DatedFile | undefined> => {
    const stats = await lstat(entryPath(opened.handle, folder, posix.basename(path))).catch(() => undefined);
    return stats?.isFile() ? { path, mtimeMs: Math.floor(stats.mtimeMs) } : undefined;
  };
  try {
    return await Promise.all(paths.map(dated));
  } finally {
    leave(opened);
  }
}

/**
 * Returns the regular files inside the roots among some canonical paths (decision C7), in order;
 * never throws.
 */
export async function datedFiles(roots: AllowedRoots, paths: readonly string[]): Promise<readonly DatedFile[]> {
  const found: (DatedFile | undefined)[] = [];
  // In batches: thousands of concurrent calls would only queue up.
  for (let at = 0; at < paths.length; at += 256) {
    const portion = paths.slice(at, at + 256);
    const byFolder = new Map<string, string[]>();
    for (const path of portion) {
      const folder = posix.dirname(path);
      const known = byFolder.get(folder);
      if (known === undefined) byFolder.set(folder, [path]);
      else known.push(path);
    }
    const dated = await Promise.all([...byFolder].map(([folder, inIt]) => datedIn(roots, folder, inIt)));
    const byPath = new Map(dated.flat().map((file) => [file?.path, file]));
    found.push(...portion.map((path) => byPath.get(path)));
  }
  return found.filter((file) => file !== undefined);
}

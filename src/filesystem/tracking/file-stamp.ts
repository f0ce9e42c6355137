import type { BigIntStats } from 'node:fs';
import { lstat, realpath, stat } from 'node:fs/promises';
import { systemCode } from '../../process/system-error.js';
import type { AllowedRoots } from '../access/roots.js';

/** What can be said of a file without opening it; two equal marks mean that nothing has to be read. */
export interface FileStamp {
  /** Inode, size and both times to the nanosecond as one text; `absent` where nothing stands. */
  readonly mark: string;
  /** `undefined` where nothing stands. */
  readonly present: { readonly size: number; readonly mtimeMs: number; readonly changedAtMs: number } | undefined;
}

const ABSENT: FileStamp = { mark: 'absent', present: undefined };
const NOTHING_THERE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);

/** Whether a mark is of a file of this size and time, milliseconds. */
export function isMarkOf(mark: string | undefined, { size, mtimeMs }: { readonly size: number; readonly mtimeMs: number }): boolean {
  const [, markedSize, mtimeNs] = mark?.split(':') ?? [];
  return markedSize === String(size) && mtimeNs !== undefined && mtimeNs.slice(0, -6) === String(mtimeMs);
}

/** Stamps a file, links not followed; `undefined` where the system gives no answer (no permission, input/output error). Never throws. */
export async function stampOf(path: string): Promise<FileStamp | undefined> {
  try {
    const stats = await lstat(path, { bigint: true });
    return {
      mark: `${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`,
      present: { size: Number(stats.size), mtimeMs: Number(stats.mtimeNs / 1_000_000n), changedAtMs: Number(stats.ctimeNs / 1_000_000n) },
    };
  } catch (error) {
    return NOTHING_THERE.has(systemCode(error) ?? '') ? ABSENT : undefined;
  }
}

/**
 * Which folder stands at a canonical path, as one text; another one after the folder was removed and made again or another was mounted over it.
 * `undefined` where no folder stands that may be watched: missing, closed to us, a link by now, outside the roots, on a root or mount that is away. Never throws.
 */
export async function folderIdentity(roots: AllowedRoots, path: string): Promise<string | undefined> {
  if (!roots.holds(path)) return undefined;
  try {
    const [stats, real, present]: [BigIntStats, string, boolean] = await Promise.all([
      // Through the folder itself: without the right to enter it, nothing in it can be checked.
      stat(`${path}/.`, { bigint: true }),
      realpath(path),
      roots.anchorPresent(path),
    ]);
    // A folder made right after another one was removed often gets its inode, but never its time of birth.
    return stats.isDirectory() && real === path && present ? `${stats.dev}:${stats.ino}:${stats.birthtimeNs}` : undefined;
  } catch {
    return undefined;
  }
}

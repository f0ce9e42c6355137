import type { BigIntStats } from 'node:fs';
import { lstat, realpath, stat } from 'node:fs/promises';
import { systemCode } from '../../process/system-error.js';
import { fromNative, toNative } from '../access/native-path.js';
import type { AllowedRoots } from '../access/roots.js';

/** Properties of a file that need no open. If two marks are equal, the file has not changed. */
export interface FileStamp {
  /** Inode, size and both times to the nanosecond as one text; `absent` if there is no file. */
  readonly mark: string;
  /** `undefined` if there is no file. */
  readonly present: { readonly size: number; readonly mtimeMs: number; readonly changedAtMs: number } | undefined;
}

const ABSENT: FileStamp = { mark: 'absent', present: undefined };
const NOTHING_THERE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);

/** Returns whether a mark belongs to a file of this size and time in milliseconds. */
export function isMarkOf(
  mark: string | undefined,
  { size, mtimeMs }: { readonly size: number; readonly mtimeMs: number },
): boolean {
  const [, markedSize, mtimeNs] = mark?.split(':') ?? [];
  return markedSize === String(size) && mtimeNs !== undefined && mtimeNs.slice(0, -6) === String(mtimeMs);
}

/**
 * Stamps a file without following links. `undefined` if the system gives no answer (no permission,
 * input/output error). Never throws.
 */
export async function stampOf(path: string): Promise<FileStamp | undefined> {
  try {
    const stats = await lstat(toNative(path), { bigint: true });
    return {
      mark: `${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`,
      present: {
        size: Number(stats.size),
        mtimeMs: Number(stats.mtimeNs / 1_000_000n),
        changedAtMs: Number(stats.ctimeNs / 1_000_000n),
      },
    };
  } catch (error) {
    return NOTHING_THERE.has(systemCode(error) ?? '') ? ABSENT : undefined;
  }
}

/**
 * Returns the identity of the folder at a canonical path. It changes if the folder is recreated or
 * another is mounted over it. `undefined` if there is no folder to watch: missing, not accessible,
 * now a link, outside the roots, or on an absent root or mount. Never throws.
 */
export async function folderIdentity(roots: AllowedRoots, path: string): Promise<string | undefined> {
  if (!roots.holds(path)) return undefined;
  try {
    const [stats, real, present]: [BigIntStats, string, boolean] = await Promise.all([
      // Uses `/.`, because without the right to enter the folder no file in it can be checked.
      stat(toNative(`${path}/.`), { bigint: true }),
      realpath(toNative(path)).then(fromNative),
      roots.anchorPresent(path),
    ]);
    // A folder created right after another was removed often reuses its inode, but never its birth
    // time.
    return stats.isDirectory() && real === path && present
      ? `${stats.dev}:${stats.ino}:${stats.birthtimeNs}`
      : undefined;
  } catch {
    return undefined;
  }
}

import { link, lstat } from 'node:fs/promises';
import { rename, whenReleased } from './held-files.js';
import { SYSTEM } from './system.js';
import { systemCode, unlessMissing } from './system-error.js';

/**
 * Error codes of filesystems without links, such as exFAT, SMB and FUSE. On Windows `EPERM` means
 * that another process holds the name.
 */
const NO_LINKS: ReadonlySet<string> = new Set([
  SYSTEM.holdsOpenFiles ? 'EISDIR' : 'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EMLINK',
]);

/** Returns whether a hard or symbolic link failed because the filesystem has no links. */
export const hasNoLinks = (error: unknown): boolean => NO_LINKS.has(systemCode(error) ?? '');

/**
 * Gives a draft its final name if that name is free. Without hard links, the name is checked right
 * before the rename. The draft may still exist afterwards. Throws system errors; `EEXIST` if the
 * name is taken.
 */
export async function takeFreeName(draft: string, path: string): Promise<void> {
  try {
    // Unlike a rename, a link fails if the name is taken.
    await whenReleased(() => link(draft, path));
  } catch (error) {
    if (!hasNoLinks(error)) throw error;
    if ((await unlessMissing(lstat(path))) !== undefined)
      throw Object.assign(new Error(`EEXIST: ${path} exists already`, { cause: error }), {
        code: 'EEXIST',
        syscall: 'rename',
      });
    await rename(draft, path);
  }
}

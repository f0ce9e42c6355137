import { link, lstat, rename } from 'node:fs/promises';
import { systemCode, unlessMissing } from './system-error.js';

/** Filesystems without links, such as exFAT, SMB and FUSE, say one of these. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Whether a hard or symbolic link could not be made because the filesystem has none. */
export const hasNoLinks = (error: unknown): boolean => NO_LINKS.has(systemCode(error) ?? '');

/** Gives a draft its name only if that is still free; where there are no hard links, it is looked at right before. The draft may still be there after. Throws what the system throws, `EEXIST` for a taken name. */
export async function takeFreeName(draft: string, path: string): Promise<void> {
  try {
    // A link, unlike a rename, leaves the name to whoever was first.
    await link(draft, path);
  } catch (error) {
    if (!hasNoLinks(error)) throw error;
    if ((await unlessMissing(lstat(path))) !== undefined)
      throw Object.assign(new Error(`EEXIST: ${path} is there already`, { cause: error }), { code: 'EEXIST', syscall: 'rename' });
    await rename(draft, path);
  }
}

import { posix } from 'node:path';
import { type CanonicalPath, canonicalPath } from '../../objects/ids.js';

const DRIVE = /^([A-Za-z]):[\\/]/;
const HOME = /^\/(?:home|Users)\/[^/]+(?=\/|$)|^\/root(?=\/|$)/;

/** A folder or file of a Windows recording under the name that its shell has for it: `D:\repo\a` is `/d/repo/a`. */
function posixSpelling(path: string): string {
  const drive = DRIVE.exec(path);
  if (drive === null) return path;
  return `/${(drive[1] ?? '').toLowerCase()}/${path.slice(drive[0].length).replaceAll('\\', '/')}`;
}

/**
 * The canonical path of a recorded name (decision H6): as recorded, relative names below the call's folder, `~` where the folder tells whose home is meant.
 * Undefined for what is no path: empty, with a NUL, too long, or relative to nothing.
 */
export function recordedPath(cwd: string | undefined, name: string): CanonicalPath | undefined {
  const folder = cwd === undefined ? undefined : posixSpelling(cwd);
  const home = folder === undefined ? undefined : HOME.exec(folder)?.[0];
  const windows = cwd !== undefined && DRIVE.test(cwd);
  let path = posixSpelling(windows && !name.startsWith('/') ? name.replaceAll('\\', '/') : name);
  if (/^~(?=\/|$)/.test(path)) {
    if (home === undefined) return undefined;
    path = home + path.slice(1);
  }
  if (path === '' || path.length > 4_000 || path.includes('\0') || !path.isWellFormed()) return undefined;
  if (posix.isAbsolute(path)) return canonicalPath(path);
  if (folder === undefined || !posix.isAbsolute(folder)) return undefined;
  return canonicalPath(posix.join(folder, path));
}

import { posix } from 'node:path';

/**
 * Canonical paths have POSIX form on every system. A drive is the first folder, as in a file URL:
 * `C:\Users\me` is `/C:/Users/me`, and `\\server\share` is `/UNC/server/share`.
 */

const DRIVE = /^([A-Za-z]):(?=$|\/)/;
/** Matches the prefix that makes Windows take a path literally. */
const LITERAL = /^\/\/[?.]\/(?:UNC\/|(?=[A-Za-z]:))/i;
const isWindows = process.platform === 'win32';

/** Returns the canonical form of a Windows path. A relative path stays relative. */
export function fromWindows(path: string): string {
  const slashed = path.replaceAll('\\', '/');
  const plain = slashed.replace(LITERAL, (prefix) => (prefix.length > 4 ? '//' : ''));
  if (DRIVE.test(plain)) return plain.replace(DRIVE, (drive) => `/${drive.toUpperCase()}`);
  return /^\/\/[^/]/.test(plain)
    ? `/UNC/${plain.slice(2)}`
    : plain.replace(/^\/[a-z](?=:(?:$|\/))/, (drive) => drive.toUpperCase());
}

/** Returns the Windows path for a canonical path. Returns any other text unchanged. */
export function toWindows(path: string): string {
  const [, drive, rest = ''] = /^\/([A-Z]:)(\/.*)?$/s.exec(path) ?? [];
  if (drive !== undefined) return `${drive}${rest.replaceAll('/', '\\') || '\\'}`;
  return path.startsWith('/UNC/') ? `\\\\${path.slice(5).replaceAll('/', '\\')}` : path;
}

/** Returns a canonical path in the form for programs and people on Windows: `C:/Users/me`. */
export function shownOnWindows(path: string): string {
  return path.startsWith('/UNC/')
    ? `//${path.slice(5)}`
    : path.replace(/^\/([A-Z]:)$/, '$1/').replace(/^\/(?=[A-Z]:\/)/, '');
}

/** Matches names of Windows devices, with any ending. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?: *\..*| *)$/i;

/**
 * Returns why no file on Windows can have this canonical path. Undefined if one can. Windows reads
 * some names as others: `a.txt:b` is a stream of `a.txt`, `a.txt.` is `a.txt`, and `nul` is a
 * device.
 */
export function refusedOnWindows(path: string): string | undefined {
  const names = path.split('/').slice(1);
  for (const [at, name] of names.entries()) {
    if (name === '' || name === '.' || name === '..' || (at === 0 && /^[A-Z]:$/.test(name))) continue;
    const shown = JSON.stringify(name);
    if (/[<>:"|?*\\\p{Cc}]/u.test(name)) return `Windows allows no file name like ${shown}`;
    if (/[. ]$/.test(name)) return `Windows drops the end of the name ${shown}`;
    if (DEVICE.test(name)) return `${shown} is a device of Windows`;
  }
  return undefined;
}

const asItIs = (path: string): string => path;

/** Returns the canonical form of this system's path. A relative path stays relative. */
export const fromNative = isWindows ? fromWindows : asItIs;
/** Returns the path that this system's calls accept for a canonical path. */
export const toNative = isWindows ? toWindows : asItIs;
/** Returns a canonical path as agents and people on this system write it. */
export const shownPath = isWindows ? shownOnWindows : asItIs;
/** Returns why no file on this system can have a canonical path. Undefined if one can. */
export const refusedPath = isWindows ? refusedOnWindows : (_path: string): string | undefined => undefined;

/** Resolves a path that an agent wrote, from a canonical folder. */
export const resolveFrom = (folder: string, path: string): string => posix.resolve(folder, fromNative(path));

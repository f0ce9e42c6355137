import { chmod, lstat, readdir, realpath } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join, win32 } from 'node:path';
import { unlessMissing } from '../process/system-error.js';
import { NodeError } from './errors.js';

/**
 * The entries that this program creates in a data folder. The name of a draft begins with the
 * entry's name and a dot.
 */
const OWN_ENTRIES: ReadonlySet<string> = new Set([
  'palimpsest.json',
  'agents',
  'checkpoint',
  'checkpoint.lock',
  'checkpoints.json',
  'erasures',
  'filesystem-id',
  'gateway',
  'hooks',
  'imported-sessions.json',
  'node.json',
  'node.lock',
  'own-sessions.json',
  'start.lock',
  'golden',
  'index',
  'journal',
  'logs',
  'loops',
  'mask-key',
  'mask-rules',
  'remote',
  'replays',
  'restores',
  'run',
  'search',
  'session-checks.json',
  'session-figures.json',
  'session-table.json',
  'sessions',
  'tmp',
  'trackers',
  'users',
  'watch',
  'watch-gateway.json',
]);

/** The folder at the top of a new filesystem, which may be a data folder. */
const LOST_AND_FOUND = 'lost+found';

/** Permission bits of all users but the owner. */
const OTHERS = 0o077;
const STICKY = 0o1000;

/**
 * Returns whether this program creates an entry with this name at a data folder's top, or a draft
 * of one.
 */
export const isOwnEntry = (name: string): boolean =>
  OWN_ENTRIES.has(name) || [...OWN_ENTRIES].some((own) => name.startsWith(`${own}.`));

function foreign(path: string, dir: string): NodeError {
  const what = path === dir ? `The data folder ${dir}` : `${path}, in the data folder ${dir},`;
  return new NodeError(
    'data-unwritable',
    `${what} belongs to another user, who could read and change its content. ` +
      'Make yourself its owner, or name another folder with --data or PALIMPSEST_DATA.',
  );
}

/**
 * Restricts one entry and its content to the owner. Skips links, whose targets are not in the data
 * folder.
 */
async function closeEntry(path: string, dir: string, uid: number): Promise<void> {
  const found = await lstat(path);
  if (found.uid !== uid) throw foreign(path, dir);
  const isFolder = found.isDirectory();
  if (!isFolder && !found.isFile() && !found.isSocket()) return;
  // Restricts a folder before its content, so that no other user can replace the content meanwhile.
  if ((found.mode & OTHERS) !== 0) await chmod(path, found.mode & (isFolder ? 0o700 : 0o600));
  if (isFolder) await closeEntries(path, await readdir(path), { dir, uid });
}

async function closeEntries(
  folder: string,
  names: readonly string[],
  { dir, uid }: { readonly dir: string; readonly uid: number },
): Promise<void> {
  // A running node and other clients may remove files meanwhile.
  await Promise.all(names.map((name) => unlessMissing(closeEntry(join(folder, name), dir, uid))));
}

/**
 * Rejects a data folder outside of the user's profile. Windows keeps other users out of the
 * profile. Elsewhere, this program would have to change a folder's rights, which it does not do.
 * @throws {NodeError} data-unwritable
 */
export function requireInProfile(dir: string, home: string): void {
  const way = win32.relative(home, dir);
  if (!win32.isAbsolute(way) && !/^\.\.(?:\\|$)/.test(way)) return;
  throw new NodeError(
    'data-unwritable',
    `The data folder ${dir} is not inside ${home}, so other users of this machine may read it. ` +
      'Name a folder inside that one with --data or PALIMPSEST_DATA.',
  );
}

/**
 * Restricts a data folder and this program's files in it to the owner. Folders get mode 0700, files
 * 0600. Foreign entries keep their modes. On Windows, which has no modes, the folder must lie in
 * the user's profile. Throws system errors.
 * @param dir absolute, symbolic links resolved
 * @throws {NodeError} data-unwritable – another user owns the folder or one of its entries, or
 *   other users share the folder
 */
export async function makePrivate(dir: string): Promise<void> {
  const uid = process.geteuid?.();
  if (uid === undefined) return requireInProfile(dir, await realpath(userInfo().homedir));
  const found = await lstat(dir);
  // The code that creates the data folder reports a path that is no folder.
  if (!found.isDirectory()) return;
  if (found.uid !== uid) throw foreign(dir, dir);
  const { mode } = found;
  const names = await readdir(dir);
  if ((mode & OTHERS) !== 0) {
    const other = names.find((name) => !isOwnEntry(name) && name !== LOST_AND_FOUND);
    const isKnown = names.includes('palimpsest.json') && (mode & STICKY) === 0;
    if (other !== undefined && !isKnown) {
      throw new NodeError(
        'data-unwritable',
        `The data folder ${dir} is open to other users and has other content (${JSON.stringify(other)}), so ` +
          'Palimpsest does not change its mode. Name a folder for Palimpsest only with --data or PALIMPSEST_DATA, ' +
          `or close this one: chmod 700 ${dir}`,
      );
    }
    await chmod(dir, 0o700);
  }
  // Reads the folder again, because only now other users can no longer add entries.
  await closeEntries(dir, (await readdir(dir)).filter(isOwnEntry), { dir, uid });
}

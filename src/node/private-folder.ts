import { chmod, lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from '../process/system-error.js';
import { NodeError } from './errors.js';

/** The entries that this program makes in a data folder; the drafts of each begin with its name and a dot. */
const OWN_ENTRIES: ReadonlySet<string> = new Set([
  'palimpsest.json',
  'checkpoint',
  'checkpoint.lock',
  'checkpoints.json',
  'filesystem-id',
  'node.json',
  'node.lock',
  'start.lock',
  'golden',
  'index',
  'journal',
  'logs',
  'loops',
  'remote',
  'replays',
  'run',
  'sessions',
  'tmp',
  'trackers',
  'users',
]);

/** What a new file system has in its top folder, which may be a data folder. */
const LOST_AND_FOUND = 'lost+found';

/** Permission bits of everybody but the owner. */
const OTHERS = 0o077;
const STICKY = 0o1000;

/** Whether an entry of a data folder's top is one that this program makes there, or a draft of one. */
export const isOwnEntry = (name: string): boolean => OWN_ENTRIES.has(name) || [...OWN_ENTRIES].some((own) => name.startsWith(`${own}.`));

function foreign(path: string, dir: string): NodeError {
  const what = path === dir ? `The data folder ${dir}` : `${path}, in the data folder ${dir},`;
  return new NodeError(
    'data-unwritable',
    `${what} belongs to another user, who could read and change what is kept there. Make yourself its owner, or name another folder with --data or PALIMPSEST_DATA.`,
  );
}

/** Closes one entry, and what lies below it, to everybody but its owner. Links are left as they are: what they name is not in the data folder. */
async function closeEntry(path: string, dir: string, uid: number): Promise<void> {
  const found = await lstat(path);
  if (found.uid !== uid) throw foreign(path, dir);
  const isFolder = found.isDirectory();
  if (!isFolder && !found.isFile() && !found.isSocket()) return;
  // The folder first: from then on nobody else can exchange what is in it.
  if ((found.mode & OTHERS) !== 0) await chmod(path, found.mode & (isFolder ? 0o700 : 0o600));
  if (isFolder) await closeEntries(path, await readdir(path), { dir, uid });
}

async function closeEntries(
  folder: string,
  names: readonly string[],
  { dir, uid }: { readonly dir: string; readonly uid: number },
): Promise<void> {
  // A running node and other clients remove files meanwhile.
  await Promise.all(names.map((name) => unlessMissing(closeEntry(join(folder, name), dir, uid))));
}

/**
 * Takes everybody but the owner the access to a data folder and to all that this program keeps in it: folders get mode 0700, files 0600. Entries that this
 * program did not make keep their modes. Does nothing on systems without such modes. Throws what the system throws.
 * @param dir absolute, symbolic links resolved
 * @throws {NodeError} data-unwritable – another user owns the folder or an entry of it, or it is a shared folder that is used for other things too
 */
export async function makePrivate(dir: string): Promise<void> {
  const uid = process.geteuid?.();
  if (uid === undefined) return;
  const found = await lstat(dir);
  // Whoever makes the data folder says why it cannot be one.
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
        `The data folder ${dir} is open to other users and holds other things (${JSON.stringify(other)}), so it is not closed to them unasked. Name a folder of its own with --data or PALIMPSEST_DATA, or close this one: chmod 700.`,
      );
    }
    await chmod(dir, 0o700);
  }
  // Read again: only now can nobody else add to it.
  await closeEntries(dir, (await readdir(dir)).filter(isOwnEntry), { dir, uid });
}

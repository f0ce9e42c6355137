import { lstat, mkdir, readdir, realpath, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join, posix, resolve } from 'node:path';
import { fromNative } from '../filesystem/access/native-path.js';
import { AllowedRoots } from '../filesystem/access/roots.js';
import { writeSource } from '../filesystem/access/write-source.js';
import { canonicalPath } from '../objects/ids.js';
import { draftOf, removeDeadDrafts } from '../process/drafts.js';
import { rename } from '../process/held-files.js';
import { systemCode, unlessMissing } from '../process/system-error.js';
import { RestoreError } from './restore-error.js';

/** A file of a new folder. */
export interface FileCopy {
  /** Its path below the folder; a path that leads out of it is rejected. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

async function requireFree(folder: string): Promise<void> {
  const found = await unlessMissing(lstat(folder));
  if (found === undefined) return;
  if (!found.isDirectory())
    throw new RestoreError(
      'not-a-folder',
      `${folder} is ${found.isSymbolicLink() ? 'a symbolic link' : 'not a folder'}: ` +
        'name a folder that does not exist, or an empty one',
    );
  if ((await readdir(folder)).length > 0)
    throw new RestoreError(
      'folder-in-use',
      `${folder} is not empty, and this command overwrites no file: name another folder`,
    );
}

/**
 * Writes files into a new folder for this user only. One rename makes all of them appear at once,
 * or none. It follows no links and writes nothing outside. Resolves to the folder's absolute path.
 * @throws {RestoreError} `folder-in-use`, `not-a-folder`
 * @throws {SourceError} for a path that cannot be created, such as one that is both a file and a
 *   folder
 */
export async function writeCopies(to: string, copies: AsyncIterable<FileCopy>): Promise<string> {
  const asked = resolve(to);
  await mkdir(dirname(asked), { recursive: true, mode: 0o700 });
  const parent = await realpath(dirname(asked));
  const folder = join(parent, basename(asked));
  await requireFree(folder);
  const hidden = `.${basename(folder)}`;
  await removeDeadDrafts(parent, {
    isOurs: (name) => name.startsWith(`${hidden}.`) && name.endsWith('.draft'),
    recursive: true,
  });
  const draft = await draftOf(join(parent, hidden));
  await mkdir(draft, { mode: 0o700 });
  try {
    const roots = await AllowedRoots.open([draft]);
    for await (const { path, bytes } of copies) {
      const at = canonicalPath(posix.join(fromNative(draft), path));
      await writeSource(roots, at, { content: bytes, expected: 'absent', shown: path, private: true });
    }
    // An empty folder is replaced; one that was filled meanwhile is not.
    await unlessMissing(rmdir(folder));
    await rename(draft, folder);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (!['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemCode(error) ?? '')) throw error;
    throw new RestoreError('folder-in-use', `${folder} was filled meanwhile: name another folder`, { cause: error });
  }
  return folder;
}

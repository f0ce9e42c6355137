import { lstat, mkdir, readdir, realpath, rename, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join, posix, resolve } from 'node:path';
import { canonicalPath } from '../../objects/ids.js';
import { draftOf, removeDeadDrafts } from '../../process/drafts.js';
import { systemCode, unlessMissing } from '../../process/system-error.js';
import { AllowedRoots } from '../access/roots.js';
import { writeSource } from '../access/write-source.js';
import { RestoreError } from './restore-error.js';

/** A file of a new folder. */
export interface FileCopy {
  /** Where it lies below the folder; what leads out of it is refused. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

async function requireFree(folder: string): Promise<void> {
  const found = await unlessMissing(lstat(folder));
  if (found === undefined) return;
  if (!found.isDirectory())
    throw new RestoreError(
      'not-a-folder',
      `${folder} is ${found.isSymbolicLink() ? 'a symbolic link' : 'no folder'}: name a folder that is not there yet, or an empty one`,
    );
  if ((await readdir(folder)).length > 0)
    throw new RestoreError('folder-in-use', `${folder} is not empty, and nothing is written over: name another folder`);
}

/**
 * Writes files into a folder of their own, for their user alone: all appear at once, by one renaming, or none. Nothing is written through links or outside of it. Resolves to the
 * folder by its whole path.
 * @throws {RestoreError} `folder-in-use`, `not-a-folder`
 * @throws {SourceError} a path that cannot be made there, such as two of which one is the other's folder
 */
export async function writeCopies(to: string, copies: AsyncIterable<FileCopy>): Promise<string> {
  const asked = resolve(to);
  await mkdir(dirname(asked), { recursive: true, mode: 0o700 });
  const parent = await realpath(dirname(asked));
  const folder = join(parent, basename(asked));
  await requireFree(folder);
  const hidden = `.${basename(folder)}`;
  await removeDeadDrafts(parent, { isOurs: (name) => name.startsWith(`${hidden}.`) && name.endsWith('.draft'), recursive: true });
  const draft = await draftOf(join(parent, hidden));
  await mkdir(draft, { mode: 0o700 });
  try {
    const roots = await AllowedRoots.open([draft]);
    for await (const { path, bytes } of copies) {
      const at = canonicalPath(posix.join(draft, path));
      await writeSource(roots, at, { content: bytes, expected: 'absent', shown: path, private: true });
    }
    // An empty folder gives way; one that somebody has filled in the meantime does not.
    await unlessMissing(rmdir(folder));
    await rename(draft, folder);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (!['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemCode(error) ?? '')) throw error;
    throw new RestoreError('folder-in-use', `${folder} came to hold something else meanwhile: name another folder`, { cause: error });
  }
  return folder;
}

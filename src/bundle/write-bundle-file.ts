import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { draftOf, removeDeadDrafts } from '../process/drafts.js';
import { systemCode } from '../process/system-error.js';
import { takeFreeName } from '../process/take-free-name.js';
import { messageOf } from '../values/thrown.js';
import { BundleError } from './bundle-error.js';

async function writeNewFile(path: string, parts: AsyncIterable<string>, through: readonly Transform[]): Promise<void> {
  await removeDeadDrafts(dirname(path), {
    isOurs: (name) => name.startsWith(`${basename(path)}.`) && name.endsWith('.draft'),
  });
  const draft = await draftOf(path);
  try {
    await pipeline([
      Readable.from(parts),
      ...through,
      createWriteStream(draft, { mode: 0o600, flags: 'wx', flush: true }),
    ]);
    await takeFreeName(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

/**
 * Writes an exported session as a new file that only this user can read. The file appears only when
 * it is complete, and never replaces an existing file. Also removes drafts that killed processes
 * left. Throws errors of `parts`.
 *
 * @throws {BundleError} `file-exists`, `unusable-file`
 */
export async function writeBundleFile(
  path: string,
  parts: AsyncIterable<string>,
  through: readonly Transform[] = [],
): Promise<void> {
  try {
    await writeNewFile(path, parts, through);
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    if (code === 'EEXIST')
      throw new BundleError('file-exists', `${path} exists and is not overwritten: name another file`, {
        cause: error,
      });
    throw new BundleError('unusable-file', `${path} cannot be written: ${messageOf(error)}`, { cause: error });
  }
}

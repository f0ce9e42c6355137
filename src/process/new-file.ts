import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { draftOf, removeDeadDrafts } from './drafts.js';
import { takeFreeName } from './take-free-name.js';

/**
 * Writes a new file for this user only. The file appears whole and never replaces another one.
 * Drafts that killed processes left are removed. Throws errors of `parts` and system errors,
 * `EEXIST` if the name is taken.
 */
export async function writeNewFile(
  path: string,
  parts: AsyncIterable<string>,
  through: readonly Transform[] = [],
): Promise<void> {
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

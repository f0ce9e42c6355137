import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { draftOf, removeDeadDrafts } from './drafts.js';
import { takeFreeName } from './take-free-name.js';

/**
 * Writes a file that is not there yet: it appears whole, for its user alone, and never over another one. What killed processes left of earlier tries goes. Throws what the parts throw and what the system throws,
 * `EEXIST` for a taken name.
 */
export async function writeNewFile(path: string, parts: AsyncIterable<string>, through: readonly Transform[] = []): Promise<void> {
  await removeDeadDrafts(dirname(path), { isOurs: (name) => name.startsWith(`${basename(path)}.`) && name.endsWith('.draft') });
  const draft = await draftOf(path);
  try {
    await pipeline([Readable.from(parts), ...through, createWriteStream(draft, { mode: 0o600, flags: 'wx', flush: true })]);
    await takeFreeName(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

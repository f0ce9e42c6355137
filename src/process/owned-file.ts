import { randomUUID } from 'node:crypto';
import { link, rm, writeFile } from 'node:fs/promises';
import { systemCode } from './system-error.js';

/**
 * Makes a file, for its owner alone, that appears under its name with its whole content or not at all: a lock that nobody ever reads half of. False when
 * one is there by this name already. Throws what the disk says otherwise.
 */
export async function createWholeFile(path: string, content: string): Promise<boolean> {
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, content, { mode: 0o600, flag: 'wx' });
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

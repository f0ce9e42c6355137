import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { bytesHold, type Forgetter, type Forgotten } from '../objects/forgotten.js';
import { namesIn } from '../process/owned-file.js';
import { keptReplacements, replacementsFolder } from './kept-replacements.js';

async function holdsText(folder: string, { texts }: Forgotten): Promise<boolean> {
  if (texts.length === 0) return false;
  for (const name of await namesIn(folder)) {
    if (bytesHold(await readFile(join(folder, name)), texts)) return true;
  }
  return false;
}

async function foldersOf(dataDir: string, forgotten: Forgotten): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { id, session } of await keptReplacements(dataDir)) {
    const folder = join(replacementsFolder(dataDir), id);
    if (forgotten.sessions.has(session) || (await holdsText(folder, forgotten))) found.push(folder);
  }
  return found;
}

/** Erases the replaced files, which restores keep for an undo. */
export const FORGET_RESTORES: Forgetter = {
  keeps: 'files that restores replaced',
  find: async (dataDir, forgotten) =>
    (await foldersOf(dataDir, forgotten)).map((folder) => `the files that a restore replaced, ${folder}`),
  forget: async (dataDir, forgotten) => {
    for (const folder of await foldersOf(dataDir, forgotten)) await rm(folder, { recursive: true, force: true });
  },
};

import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Forgetter } from '../objects/forgotten.js';
import { remoteFolders } from '../process/data-folder.js';
import { TextIndex } from './text-index.js';

/** Returns the folders with an index in a data folder, one for each database. */
async function indexFolders(dataDir: string): Promise<readonly string[]> {
  const remote = await readdir(remoteFolders(dataDir)).catch((): string[] => []);
  const folders = [dataDir, ...remote.map((name) => join(remoteFolders(dataDir), name))];
  return folders.map((folder) => join(folder, 'search')).filter((folder) => existsSync(folder));
}

/** Removes whole indexes after an erasure. The next search builds them without the erased texts. */
export const FORGET_INDEX: Forgetter = {
  keeps: 'the search index',
  find: async (dataDir) =>
    (await indexFolders(dataDir)).map((folder) => `${folder}, which the next search builds again`),
  forget: async (dataDir) => {
    for (const folder of await indexFolders(dataDir)) await TextIndex.remove(folder);
  },
};

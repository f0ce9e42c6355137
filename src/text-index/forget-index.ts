import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Forgetter } from '../objects/forgotten.js';
import { clientFolders } from '../process/data-folder.js';
import { TextIndex } from './text-index.js';

/** Returns the folders with an index in a data folder, one for each database. */
async function indexFolders(dataDir: string): Promise<readonly string[]> {
  return (await clientFolders(dataDir)).map((folder) => join(folder, 'search')).filter((folder) => existsSync(folder));
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

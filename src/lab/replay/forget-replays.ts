import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Forgetter, Forgotten } from '../../objects/forgotten.js';
import { namesIn } from '../../process/owned-file.js';

const folderOf = (dataDir: string): string => join(dataDir, 'replays');

async function logsOf(dataDir: string, { sessions }: Forgotten): Promise<readonly string[]> {
  return (await namesIn(folderOf(dataDir))).filter((name) => sessions.has(name.replace(/\.jsonl$/, '')));
}

/** Erases the replay logs of erased sessions. */
export const FORGET_REPLAYS: Forgetter = {
  keeps: 'the logs of replays',
  find: async (dataDir, forgotten) =>
    (await logsOf(dataDir, forgotten)).map((name) => `the log of a replay, replays/${name}`),
  forget: async (dataDir, forgotten) => {
    for (const name of await logsOf(dataDir, forgotten)) await rm(join(folderOf(dataDir), name), { force: true });
  },
};

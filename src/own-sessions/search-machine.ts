import { homedir } from 'node:os';
import { progressLine } from '../cli/output.js';
import type { MaskLoader } from '../client/record-mask.js';
import { type Environment, variable } from '../host/environment.js';
import { openMask } from '../host/open-mask.js';
import { maskSetting } from '../host/settings.js';
import { agentHomes } from './agent-homes.js';
import { type FoundSessions, findSessions } from './find-sessions.js';
import { SessionIndex } from './session-index.js';

/** Returns the user's home folder by the rule that agents use. */
export const homeFolder = (env: Environment): string => variable(env, 'HOME') ?? homedir();

/** The sessions of this user's agents, and the index of their facts. */
interface SearchedMachine extends FoundSessions {
  readonly index: SessionIndex;
  readonly mask: MaskLoader;
}

/**
 * Finds the sessions of this user's agents and shows the progress on a terminal. With `withUse`, it
 * also computes the context use.
 */
export async function searchMachine(
  env: Environment,
  dataDir: string,
  { withUse = false }: { readonly withUse?: boolean } = {},
): Promise<SearchedMachine> {
  const progress = progressLine();
  const index = await SessionIndex.open(dataDir);
  const mask: MaskLoader = () => openMask(dataDir, maskSetting(env));
  try {
    const found = await findSessions({
      homes: agentHomes({ env, home: homeFolder(env), platform: process.platform }),
      index,
      mask,
      withUse,
      onProgress: (done, total) =>
        progress.show(`reading sessions: ${Math.floor((100 * done) / Math.max(1, total))} %`),
    });
    return { ...found, index, mask };
  } finally {
    progress.end();
  }
}

import { homedir } from 'node:os';
import { progressLine } from '../cli/output.js';
import { type Environment, variable } from '../host/environment.js';
import { agentHomes } from './agent-homes.js';
import { type FoundSessions, findSessions } from './find-sessions.js';
import { SessionIndex } from './session-index.js';

/** Returns the home folder of the user, as agents find it. */
export const homeFolder = (env: Environment): string => variable(env, 'HOME') ?? homedir();

/** The sessions of this user's agents with their index. */
interface SearchedMachine extends FoundSessions {
  readonly index: SessionIndex;
  /** Writes the index again after more was kept in it. */
  save(): Promise<void>;
}

/** Finds the sessions of this user's agents, and shows the progress on a terminal. */
export async function searchMachine(env: Environment, dataDir: string): Promise<SearchedMachine> {
  const progress = progressLine();
  const index = await SessionIndex.open(dataDir);
  try {
    const found = await findSessions({
      homes: agentHomes({ env, home: homeFolder(env), platform: process.platform }),
      index,
      onProgress: (done, total) =>
        progress.show(`reading sessions: ${Math.floor((100 * done) / Math.max(1, total))} %`),
    });
    return { ...found, index, save: () => index.save() };
  } finally {
    progress.end();
  }
}

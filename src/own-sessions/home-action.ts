import { coloursFor, reportFailure, standardOutput, writeOutput } from '../cli/output.js';
import { listSessions } from '../client/session/open-session.js';
import { openStore } from '../host/open-store.js';
import { settingsOfPast } from '../host/past-settings.js';
import { readSettings, type Settings } from '../host/settings.js';
import { runningProfile } from '../node/node-status.js';
import { namesIn } from '../process/owned-file.js';
import { firstScreenLines, type Recorded } from './first-screen.js';
import { homeFolder, searchMachine } from './search-machine.js';

/**
 * Counts the sessions in the database if its node runs. It does not start the node, which would
 * take seconds.
 */
async function recordedIn(settings: Settings): Promise<Recorded> {
  const { nodeUrl, node } = settings;
  const exists = nodeUrl !== undefined || (await namesIn(node.dataDir)).includes('golden');
  if (nodeUrl === undefined && (await runningProfile(node.dataDir)) === undefined)
    return { exists, sessions: undefined };
  try {
    const { store, close } = await openStore(await settingsOfPast(settings), () => undefined);
    try {
      return { exists: true, sessions: (await listSessions(await store.latest(), [])).length };
    } finally {
      await close();
    }
  } catch {
    // The first screen does not fail if the database does not answer; `doctor` reports that.
    return { exists: true, sessions: undefined };
  }
}

/** Runs `palimpsest` without arguments on a terminal. */
export async function homeAction(version: string): Promise<void> {
  await reportFailure({}, async () => {
    const settings = readSettings(process.env);
    const [found, recorded] = await Promise.all([
      searchMachine(process.env, settings.node.dataDir),
      recordedIn(settings),
    ]);
    const target = standardOutput({});
    const colours = coloursFor(target);
    const screen = { ...found, version, recorded, now: new Date(), home: homeFolder(process.env) };
    await writeOutput(firstScreenLines(screen, { colours, width: target.width }), target);
  });
}

import { stat } from 'node:fs/promises';
import { HistoryError } from '../history/rebuild/history-error.js';
import { runningProfile } from '../node/node-status.js';
import { unlessMissing } from '../process/system-error.js';
import { defined } from '../values/defined.js';
import type { Settings } from './settings.js';

/**
 * Returns the settings for questions about the past. Takes the profile of a running node, and
 * creates no data folder.
 * @throws {HistoryError} `unknown-session` – there is no data folder
 */
export async function settingsOfPast<S extends Settings>(settings: S): Promise<S> {
  if (settings.nodeUrl !== undefined) return settings;
  const { dataDir } = settings.node;
  if ((await unlessMissing(stat(dataDir))) === undefined)
    throw new HistoryError(
      'unknown-session',
      `the data folder ${dataDir} does not exist, so it has no sessions (set --data or PALIMPSEST_DATA)`,
    );
  const profile = await runningProfile(dataDir);
  return { ...settings, node: { ...settings.node, ...defined({ profile }) } };
}

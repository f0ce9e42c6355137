import { stat } from 'node:fs/promises';
import { HistoryError } from '../history/rebuild/history-error.js';
import { runningProfile } from '../node/node-status.js';
import { unlessMissing } from '../process/system-error.js';
import { defined } from '../values/defined.js';
import type { Settings } from './settings.js';

/**
 * Settings as whoever asks about the past uses them: a node that runs already keeps its profile, and no data folder is made.
 * @throws {HistoryError} `unknown-session` – there is no data folder
 */
export async function settingsOfPast<S extends Settings>(settings: S): Promise<S> {
  if (settings.nodeUrl !== undefined) return settings;
  const { dataDir } = settings.node;
  if ((await unlessMissing(stat(dataDir))) === undefined)
    throw new HistoryError(
      'unknown-session',
      `there is no data folder ${dataDir}: nothing was recorded there (--data, PALIMPSEST_DATA)`,
    );
  const profile = await runningProfile(dataDir);
  return { ...settings, node: { ...settings.node, ...defined({ profile }) } };
}

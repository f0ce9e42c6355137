import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type AsideFile, asideFiles, type InspectedJournal, inspectJournals, isBrokenJournal } from '../journal/journals.js';
import { type LockOwner, sessionLockOwners } from '../lease/session-lock.js';
import { checkDataFormat } from '../node/data-folder.js';
import { hasFailedWrites, type NodeStatusReport, nodeStatus } from '../node/node-status.js';
import { remoteFolders } from '../process/data-folder.js';
import { type LoopTrouble, loopTroubles, type TrackerReport, trackerReports } from '../process/process-reports.js';
import { messageOf } from '../values/thrown.js';
import { UsageError } from './settings.js';

/** What the clients of one database keep in a folder. */
export interface InspectedFolder {
  readonly path: string;
  readonly journals: readonly InspectedJournal[];
  /** Damaged journal files that nobody has settled. */
  readonly aside: readonly AsideFile[];
  readonly sessions: readonly LockOwner[];
  readonly trackers: readonly TrackerReport[];
}

/** What a data folder holds. */
export interface InspectedDataFolder {
  readonly node: NodeStatusReport;
  /** For the node of the data folder. */
  readonly own: InspectedFolder;
  /** For each node that someone else runs. */
  readonly remote: readonly InspectedFolder[];
  /** What harnesses with our context in their loop had to do without it. */
  readonly loops: readonly LoopTrouble[];
  /** Why this version must not use the folder: its format is newer, or nothing says which one it is; null where it may. */
  readonly formatTrouble: string | null;
  /** False when the format is not known, the node takes no more writes, runs on a full disk, unsupervised or away from its shared log, or a journal is damaged or cannot be read. */
  readonly healthy: boolean;
}

async function inspectFolder(path: string): Promise<InspectedFolder> {
  const [journals, aside, sessions, trackers] = await Promise.all([
    inspectJournals(path),
    asideFiles(path),
    sessionLockOwners(path),
    trackerReports(path),
  ]);
  return { path, journals, aside, sessions, trackers };
}

async function inspectRemote(dataDir: string): Promise<readonly InspectedFolder[]> {
  const folder = remoteFolders(dataDir);
  const names = await readdir(folder).catch(() => []);
  return Promise.all(names.map((name) => inspectFolder(join(folder, name))));
}

/**
 * Reads the state of the node, the journals, the open sessions and the trackers of a data folder. Changes nothing; a folder that does not exist is empty.
 * @throws {UsageError} usage – the path is a file
 */
export async function inspectDataFolder(dataDir: string): Promise<InspectedDataFolder> {
  const found = await stat(dataDir).catch(() => undefined);
  if (found?.isDirectory() === false) throw new UsageError(`${dataDir} is a file; name the data folder`);
  const [formatTrouble, node, own, remote, loops] = await Promise.all([
    found === undefined ? null : checkDataFormat(dataDir).then(() => null, messageOf),
    nodeStatus(dataDir),
    inspectFolder(dataDir),
    inspectRemote(dataDir),
    loopTroubles(dataDir),
  ]);
  const isBroken = [own, ...remote].some(({ journals, aside }) => aside.length > 0 || journals.some(isBrokenJournal));
  const isNodeBroken = node.running && (hasFailedWrites(node) || node.isDiskFull || !node.supervised || node.log?.reachable === false);
  return { node, own, remote, loops, formatTrouble, healthy: formatTrouble === null && !isBroken && !isNodeBroken };
}

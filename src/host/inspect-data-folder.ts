import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { StepsInFork } from '../client/delivery/rescue-fork.js';
import { type AsideFile, asideFiles, type InspectedJournal, inspectJournals } from '../journal/journals.js';
import { type LockOwner, sessionLockOwners } from '../lease/session-lock.js';
import { checkDataFormat } from '../node/data-folder.js';
import { type NodeStatusReport, nodeLogs, nodeStatus } from '../node/node-status.js';
import { remoteFolders } from '../process/data-folder.js';
import { type LoopTrouble, loopTroubles, type TrackerReport, trackerReports } from '../process/process-reports.js';
import { codeOf, messageOf } from '../values/thrown.js';
import type { Environment } from './environment.js';
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
  readonly formatTrouble: { readonly code: string; readonly message: string } | null;
  /** Whether the node has stopped because the database lacks documents that its log names, as its own log says. */
  readonly lacksDocuments: boolean;
  /** Acknowledged steps that only a fork has; absent where no database answered. */
  readonly forks?: readonly StepsInFork[];
}

/** Lines of the node's log that are looked through for why its indexer stopped. */
const LINES_LOOKED_AT = 2_000;

async function saysMissingDocuments(dataDir: string): Promise<boolean> {
  const logs = await nodeLogs(dataDir, LINES_LOOKED_AT);
  return /\bmissing docs:/.test(logs?.text ?? '');
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
 * `environment` has the credentials of a bucket that checkpoints are kept in.
 * @throws {UsageError} usage – the path is a file
 */
export async function inspectDataFolder(dataDir: string, environment: Environment = {}): Promise<InspectedDataFolder> {
  const found = await stat(dataDir).catch(() => undefined);
  if (found?.isDirectory() === false) throw new UsageError(`${dataDir} is a file; name the data folder`);
  const [formatTrouble, node, own, remote, loops] = await Promise.all([
    found === undefined
      ? null
      : checkDataFormat(dataDir).then(
          () => null,
          (error: unknown) => ({ code: codeOf(error) ?? 'data-corrupt', message: messageOf(error) }),
        ),
    nodeStatus(dataDir, environment),
    inspectFolder(dataDir),
    inspectRemote(dataDir),
    loopTroubles(dataDir),
  ]);
  const lacksDocuments = node.running && node.ingesterFailed && (await saysMissingDocuments(dataDir));
  return { node, own, remote, loops, formatTrouble, lacksDocuments };
}

import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { StepsInFork } from '../client/recovery/rescue-fork.js';
import { type GatewayTrouble, gatewayTroubles } from '../gateway/gateway-report.js';
import type { Environment } from '../host/environment.js';
import { UsageError } from '../host/settings.js';
import { type AsideFile, asideFiles, type InspectedJournal, inspectJournals } from '../journal/journals.js';
import { type LockOwner, sessionLockOwners } from '../journal/session-lock.js';
import { checkDataFormat } from '../node/data-folder.js';
import { PENDING_ORDER } from '../node/erasure-sign.js';
import { type NodeStatusReport, nodeLogs, nodeStatus } from '../node/node-status.js';
import { remoteFolders } from '../process/data-folder.js';
import { type LoopTrouble, loopTroubles, type TrackerReport, trackerReports } from '../process/process-reports.js';
import { codeOf, messageOf } from '../values/thrown.js';

/** The files that clients of one database keep in a folder. */
export interface InspectedFolder {
  readonly path: string;
  readonly journals: readonly InspectedJournal[];
  /** Damaged journal files that are not archived yet. */
  readonly aside: readonly AsideFile[];
  readonly sessions: readonly LockOwner[];
  readonly trackers: readonly TrackerReport[];
}

/** The content of a data folder. */
export interface InspectedDataFolder {
  readonly node: NodeStatusReport;
  /** Files for the data folder's own node. */
  readonly own: InspectedFolder;
  /** Files for each node that another program runs. */
  readonly remote: readonly InspectedFolder[];
  /** Model calls sent without our context by harnesses that use our context in their loop. */
  readonly loops: readonly LoopTrouble[];
  /** Model calls that a gateway forwarded without logging them. */
  readonly gateways: readonly GatewayTrouble[];
  /** Why this version must not use the folder: its format is newer or unknown. Null if it may. */
  readonly formatTrouble: { readonly code: string; readonly message: string } | null;
  /**
   * Whether the node stopped, according to its log file, because documents named in the transaction
   * log are missing.
   */
  readonly lacksDocuments: boolean;
  /** Whether an order to erase was recorded and is not finished. */
  readonly isErasing: boolean;
  /** Acknowledged steps that only a fork has; absent if no database answered. */
  readonly forks?: readonly StepsInFork[];
}

/** Number of lines of the node's log searched for the reason why its indexer stopped. */
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
 * Reads the state of the node, the journals, the open sessions and the trackers of a data folder.
 * Changes nothing; a missing folder counts as empty. `environment` has the credentials of a
 * checkpoint bucket.
 * @throws {UsageError} usage – the path is a file
 */
export async function inspectDataFolder(dataDir: string, environment: Environment = {}): Promise<InspectedDataFolder> {
  const found = await stat(dataDir).catch(() => undefined);
  if (found?.isDirectory() === false) throw new UsageError(`${dataDir} is a file; name the data folder`);
  const [formatTrouble, node, own, remote, loops, gateways] = await Promise.all([
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
    gatewayTroubles(dataDir),
  ]);
  const lacksDocuments = node.running && node.ingesterFailed && (await saysMissingDocuments(dataDir));
  const isErasing = existsSync(join(dataDir, PENDING_ORDER));
  return { node, own, remote, loops, gateways, formatTrouble, lacksDocuments, isErasing };
}

import { mkdir } from 'node:fs/promises';
import { WATCH_LOCK, watchOwner } from '../host/watch-report.js';
import { endProcess } from '../node/stop-node.js';
import { acquireLock, ownToken, tokenSchema } from '../process/lock.js';
import type { OwnedFile } from '../process/owned-file.js';
import { WatchError } from './watch-error.js';

/**
 * Makes this process the one that follows the sessions of a data folder.
 * @throws {WatchError} `running` – another process does
 */
export async function acquireWatch(dataDir: string): Promise<OwnedFile> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const lock = await acquireLock({ folder: dataDir, name: WATCH_LOCK, schema: tokenSchema }, await ownToken());
  if (!('heldBy' in lock)) return lock;
  throw new WatchError(
    'running',
    `Process ${lock.heldBy?.pid ?? '?'} follows the sessions of ${dataDir} already. To end it: palimpsest watch --stop`,
  );
}

/**
 * Ends the process that follows the sessions of a data folder. Returns false if none ran.
 * @throws {WatchError} `stop-failed`
 */
export async function stopWatch(dataDir: string): Promise<boolean> {
  const owner = await watchOwner(dataDir);
  if (owner === undefined) return false;
  if (await endProcess(owner)) return true;
  throw new WatchError('stop-failed', `Process ${owner.pid} does not end. End it manually: kill -9 ${owner.pid}`);
}

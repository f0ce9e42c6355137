import { spawn } from 'node:child_process';
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readWatchReport, WATCH_LOCK, watchOwner } from '../host/watch-report.js';
import { endProcess } from '../node/stop-node.js';
import { acquireLock, ownToken, tokenSchema } from '../process/lock.js';
import type { OwnedFile } from '../process/owned-file.js';
import { pollUntil } from '../process/within-limit.js';
import { WatchError } from './watch-error.js';

/**
 * Locks the sessions of a data folder, so that only this process follows them.
 * @throws {WatchError} `running` – another process follows them
 */
export async function acquireWatch(dataDir: string): Promise<OwnedFile> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const lock = await acquireLock({ folder: dataDir, name: WATCH_LOCK, schema: tokenSchema }, await ownToken());
  if (!('heldBy' in lock)) return lock;
  throw new WatchError(
    'running',
    `Process ${lock.heldBy?.pid ?? '?'} already follows the sessions of ${dataDir}. To end it: palimpsest watch --stop`,
  );
}

/**
 * Ends the process that follows the sessions of a data folder. Returns false if there was none.
 * @throws {WatchError} `stop-failed`
 */
export async function stopWatch(dataDir: string): Promise<boolean> {
  const owner = await watchOwner(dataDir);
  if (owner === undefined) return false;
  if (await endProcess(owner)) return true;
  throw new WatchError('stop-failed', `Process ${owner.pid} does not end. End it manually: kill -9 ${owner.pid}`);
}

/** Maximum wait until the process is ready, in milliseconds. */
const START_MS = 20_000;
/** Maximum characters to show of the output of a process that did not start. */
const LAST_WORDS = 2_000;

/**
 * Starts `palimpsest watch` as a separate process, unless one is running. Resolves when it is
 * ready.
 * @throws {WatchError} `not-started`
 */
export async function startInBackground(dataDir: string): Promise<{ readonly pid: number; readonly started: boolean }> {
  const owner = await watchOwner(dataDir);
  if (owner !== undefined) return { pid: owner.pid, started: false };
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, 'watch.log');
  const log = await open(path, 'w', 0o600);
  const child = spawn(process.execPath, [process.argv[1] ?? '', 'watch', '--data', dataDir], {
    stdio: ['ignore', log.fd, log.fd],
    detached: true,
    cwd: dataDir,
  });
  await log.close();
  let isGone = false;
  child.once('error', () => {
    isGone = true;
  });
  child.once('exit', () => {
    isGone = true;
  });
  child.unref();
  const ready = async (): Promise<number | 'gone' | undefined> => {
    const [running, state] = [await watchOwner(dataDir), await readWatchReport(dataDir)];
    // The lock may belong to another process that was started at the same time.
    if (running !== undefined && state?.pid === running.pid) return running.pid;
    return isGone ? 'gone' : undefined;
  };
  const found = await pollUntil(ready, { limitMs: START_MS });
  if (typeof found === 'number') return { pid: found, started: found === child.pid };
  const said = (await readFile(path, 'utf8').catch(() => '')).trim().slice(-LAST_WORDS);
  throw new WatchError(
    'not-started',
    `palimpsest watch did not start${said === '' ? '' : `: ${said}`}. Run it without --background to see why.`,
  );
}

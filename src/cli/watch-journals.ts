import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FSWatcher, watch } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { JournalOwners } from '../journal/journals.js';
import type { NodePhase } from '../node/node-state.js';
import { isAlive, type ProcessIdentity } from '../process/process-identity.js';

/**
 * Interval, in milliseconds, at which processes with journals are checked. Killing a process
 * changes no file.
 */
const LIVING_MS = 250;
/** Interval, in milliseconds, at which folders are read if the system does not report changes. */
const UNWATCHED_MS = 1_000;
/** The shortest pause after a failed delivery, in milliseconds. */
const FIRST_PAUSE_MS = 500;
/** The longest pause after failed deliveries, in milliseconds. */
const LONGEST_PAUSE_MS = 600_000;

/**
 * The node phases in which steps are delivered. If the node is starting, the delivery waits for it.
 */
const REACHABLE: ReadonlySet<NodePhase | undefined> = new Set(['starting', 'ready']);

/** Delivers the journals in a separate process. */
function runDelivery(dataDir: string, signal: AbortSignal): Promise<void> {
  // If this process is killed, the pipe is closed, and the child ends.
  const child = spawn(process.execPath, [process.argv[1] ?? '', 'journal', 'deliver', '--data', dataDir], {
    windowsHide: true,
    stdio: ['pipe', 'ignore', 'inherit'],
    signal,
  });
  return new Promise((resolve) => child.on('error', () => resolve()).on('close', () => resolve()));
}

/**
 * Reports when files appear or disappear in folders. Writes to files are ignored, because a journal
 * grows with every step.
 */
class FolderChanges {
  readonly #watchers = new Map<string, FSWatcher>();
  #changed = new AbortController();

  /** Starts watching a folder. Returns false if it does not exist or the system cannot watch it. */
  watch(folder: string): boolean {
    if (this.#watchers.has(folder)) return true;
    try {
      const watcher = watch(folder, { persistent: false }, (event) => {
        if (event === 'rename') this.#changed.abort();
      });
      const end = (): void => {
        watcher.close();
        this.#watchers.delete(folder);
        this.#changed.abort();
      };
      watcher.on('error', end);
      this.#watchers.set(folder, watcher);
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Begins to listen for the next change. `next` then also reports a change made before its call.
   */
  listen(): void {
    this.#changed = new AbortController();
  }

  /** Resolves at the first change since `listen`, after `limitMs`, or when the signal aborts. */
  async next(limitMs: number | undefined, signal: AbortSignal): Promise<void> {
    const over = AbortSignal.any([this.#changed.signal, signal]);
    if (over.aborted) return;
    if (limitMs === undefined) await once(over, 'abort');
    else await delay(limitMs, undefined, { signal: over }).catch(() => undefined);
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
  }
}

/** Waits until one of the processes has ended, or the signal aborts. */
async function oneEnded(processes: readonly ProcessIdentity[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const one of processes) if (!(await isAlive(one))) return;
    await delay(LIVING_MS, undefined, { signal }).catch(() => undefined);
  }
}

/**
 * Watches the journals of a data folder until the signal aborts. It looks for steps of processes
 * that have died. If the node answers or is starting, a separate process delivers them, so that
 * this one stays small. Failed deliveries are retried with increasing delays. Nothing is read until
 * a file appears or disappears, or a process with a journal ends. Never rejects.
 */
export async function watchJournals(dataDir: string, signal: AbortSignal): Promise<void> {
  const [{ journalOwners }, { journalFolder }, { nodePhase }] = await Promise.all([
    import('../journal/journals.js'),
    import('../journal/journal-folder.js'),
    import('../node/node-status.js'),
  ]);
  const owners = (): Promise<JournalOwners> => journalOwners(dataDir).catch(() => ({ left: [], living: [] }));
  const tried = new Map<string, { readonly pauseMs: number; readonly until: number }>();
  const changes = new FolderChanges();
  const isDue = (owner: string): boolean => (tried.get(owner)?.until ?? 0) <= performance.now();
  while (!signal.aborted) {
    changes.listen();
    // The data folder has the node's state. The journal folder may be created there later.
    const isWatched = [dataDir, journalFolder(dataDir)].map((folder) => changes.watch(folder))[0] === true;
    const { left, living } = await owners();
    const due = left.filter(isDue);
    if (due.length > 0 && REACHABLE.has(await nodePhase(dataDir))) {
      await runDelivery(dataDir, signal);
      const still = new Set((await owners()).left);
      for (const owner of due) {
        const pauseMs = Math.min(2 * (tried.get(owner)?.pauseMs ?? FIRST_PAUSE_MS / 2), LONGEST_PAUSE_MS);
        if (still.has(owner)) tried.set(owner, { pauseMs, until: performance.now() + pauseMs });
        else tried.delete(owner);
      }
      continue;
    }
    const nextTry = Math.min(
      ...left.filter((owner) => !isDue(owner)).map((owner) => (tried.get(owner)?.until ?? 0) - performance.now()),
    );
    const limits = [...(isWatched ? [] : [UNWATCHED_MS]), ...(Number.isFinite(nextTry) ? [Math.max(1, nextTry)] : [])];
    const settled = new AbortController();
    const either = AbortSignal.any([signal, settled.signal]);
    const waits = [changes.next(limits.length === 0 ? undefined : Math.min(...limits), either)];
    if (living.length > 0) waits.push(oneEnded(living, either));
    await Promise.race(waits);
    settled.abort();
  }
  changes.close();
}

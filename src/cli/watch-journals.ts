import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FSWatcher, watch } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { JournalOwners } from '../journal/journals.js';
import type { NodePhase } from '../node/node-state.js';
import { isAlive, type ProcessIdentity } from '../process/process-identity.js';

/** How often the processes that write journals are looked at, milliseconds: no file tells that one has been killed. */
const LIVING_MS = 250;
/** How often everything is looked at where the system does not report changes of a folder, milliseconds. */
const UNWATCHED_MS = 1_000;
/** The first pause after a journal could not be delivered, and the longest, milliseconds. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 600_000;

/** Phases of a node at which a delivery begins: beside one that is starting it waits, and has begun when the node is ready. */
const REACHABLE: ReadonlySet<NodePhase | undefined> = new Set(['starting', 'ready']);

/** A delivery by a process of its own. */
function runDelivery(dataDir: string, signal: AbortSignal): Promise<void> {
  // The pipe closes when this process is killed, which ends the other one.
  const child = spawn(process.execPath, [process.argv[1] ?? '', 'journal', 'deliver', '--data', dataDir], {
    stdio: ['pipe', 'ignore', 'inherit'],
    signal,
  });
  return new Promise((resolve) => child.on('error', () => resolve()).on('close', () => resolve()));
}

/** Folders whose files come and go. What is written to a file that is there is of no concern: a journal grows with every step. */
class FolderChanges {
  readonly #watchers = new Map<string, FSWatcher>();
  #changed = new AbortController();

  /** Watches a folder from now on; false where it is not there, or the system cannot. */
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

  /** Begins to listen for the next change: what changes before `next` is waited for counts. */
  listen(): void {
    this.#changed = new AbortController();
  }

  /** Resolves with the next change since `listen`, after some time, or with the signal. */
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

/** Waits until one of some processes has ended, or the signal fires. */
async function oneEnded(processes: readonly ProcessIdentity[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const one of processes) if (!(await isAlive(one))) return;
    await delay(LIVING_MS, undefined, { signal }).catch(() => undefined);
  }
}

/**
 * Watches the journals of a data folder until the signal fires: when a process has died and left steps there, and the node answers or is starting, a process of its
 * own delivers them, since this one is to stay small. What cannot be delivered is tried again, less and less often. As long as no file comes or goes and no process
 * that writes ends, nothing is read. Never rejects.
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
    // The state of the node lies in the folder itself, and there its journals appear.
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
    const nextTry = Math.min(...left.filter((owner) => !isDue(owner)).map((owner) => (tried.get(owner)?.until ?? 0) - performance.now()));
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

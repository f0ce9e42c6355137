import { watch as watchNames } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { fromNative, toNative } from '../access/native-path.js';

/** A watch on the names of one folder. */
export interface FolderWatch {
  /** The watcher in use: chokidar, or `fs.watch`. */
  readonly kind: 'chokidar' | 'plain';
  /** Idempotent. */
  close(): Promise<void>;
}

/**
 * Called with the name of a changed entry. For a change of the folder itself, called with the
 * folder's name or undefined.
 */
export type FolderListener = (name: string | undefined) => void;

/**
 * Starts a watch, which is active once the promise resolves. Rejects with the system's error, such
 * as `ENOSPC` if no watches are left.
 */
export type StartFolderWatch = (folder: string, listener: FolderListener) => Promise<FolderWatch>;

/**
 * Number of entries above which a folder is watched without chokidar. Chokidar reads the whole
 * folder once a second while anything in it changes (decision 0006).
 */
const CROWDED_ENTRIES = 250;

async function startChokidar(folder: string, listener: FolderListener): Promise<FolderWatch> {
  // Loaded on first use, because loading takes a tenth of a second.
  const { watch } = await import('chokidar');
  const watcher = watch(folder, {
    depth: 0,
    persistent: false,
    ignoreInitial: true,
    followSymlinks: false,
    atomic: false,
    // The folder's own watch reports every name in it. Watches on files would lose a file that is
    // removed and recreated.
    ignored: (path) => fromNative(path) !== fromNative(folder),
  });
  watcher.on('raw', (_event, name) => listener(typeof name === 'string' ? name : undefined));
  try {
    await new Promise<void>((resolve, reject) => {
      watcher.once('ready', resolve);
      watcher.once('error', reject);
    });
  } catch (error) {
    await watcher.close();
    throw error;
  }
  watcher.on('error', () => listener(undefined));
  return { kind: 'chokidar', close: () => watcher.close() };
}

/** Watches a folder with `fs.watch`. */
export async function watchPlain(folder: string, listener: FolderListener): Promise<FolderWatch> {
  const watcher = watchNames(folder, { persistent: false });
  watcher.on('change', (_event, name) => listener(typeof name === 'string' ? name : undefined));
  watcher.on('error', () => listener(undefined));
  return { kind: 'plain', close: async () => watcher.close() };
}

/** Counts the entries of a folder, up to the first that makes it crowded. */
async function countEntries(folder: string): Promise<number> {
  let entries = 0;
  for await (const _entry of await opendir(folder, { bufferSize: 256 })) {
    entries += 1;
    if (entries > CROWDED_ENTRIES) break;
  }
  return entries;
}

/**
 * Watches with chokidar until the folder is crowded. Counts the entries again once so many names
 * were reported that it may be crowded.
 */
async function startUntilCrowded(folder: string, entries: number, listener: FolderListener): Promise<FolderWatch> {
  const told = new Set<string>();
  let counted = entries;
  let isOver = false;
  let change: Promise<void> | undefined;

  async function changeIfCrowded(): Promise<void> {
    await started;
    counted = await countEntries(folder);
    told.clear();
    if (counted <= CROWDED_ENTRIES || isOver) return;
    const before = watch;
    watch = await watchPlain(folder, listener);
    await before.close();
  }

  const started = startChokidar(folder, (name) => {
    listener(name);
    if (name === undefined || change !== undefined || told.add(name).size + counted <= CROWDED_ENTRIES) return;
    // If the folder is gone or no watch is left, chokidar continues. The next reported name
    // triggers a retry.
    change = changeIfCrowded()
      .catch(() => undefined)
      .finally(() => {
        change = undefined;
      });
  });
  let watch = await started;
  return {
    get kind() {
      return watch.kind;
    },
    close: async () => {
      isOver = true;
      await change;
      await watch.close();
    },
  };
}

/**
 * Watches a folder with chokidar, unless the folder is or becomes crowded. Ignores subfolders'
 * contents and follows no links.
 */
export async function watchFolder(path: string, listener: FolderListener): Promise<FolderWatch> {
  const folder = toNative(path);
  const entries = await countEntries(folder);
  return entries > CROWDED_ENTRIES ? watchPlain(folder, listener) : startUntilCrowded(folder, entries, listener);
}

const BEAT_MS = 250;

/** A running check for stalls of the event loop. */
export interface StallMonitor {
  /** Idempotent. */
  close(): void;
}

/**
 * Calls `onStall` after the event loop stalled for `longestMs` or more, when system events may have
 * been lost. Stalls of `longestMs - 250` or more may trigger it, too. Does not keep the process
 * alive.
 */
export function monitorStalls(longestMs: number, onStall: () => void): StallMonitor {
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    const gap = now - last;
    last = now;
    if (gap >= Math.max(longestMs, 2 * BEAT_MS)) onStall();
  }, BEAT_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
}

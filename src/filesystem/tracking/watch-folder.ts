import { watch as watchPlainly } from 'node:fs';
import { opendir } from 'node:fs/promises';

/** A watch on the names of one folder. */
export interface FolderWatch {
  /** What watches the folder now. */
  readonly kind: FolderWatchKind;
  /** Idempotent. */
  close(): Promise<void>;
}

/** Called with a name in the folder that something happened to; with the folder's own name, or undefined, where the folder itself changed. */
export type FolderListener = (name: string | undefined) => void;

/** Starts a watch; it is in place when the promise resolves. Rejects with the system's error, such as `ENOSPC` where no watches are left. */
export type StartFolderWatch = (folder: string, listener: FolderListener) => Promise<FolderWatch>;

/** What watches a folder: chokidar, or `fs.watch` itself (decision 0006). */
export type FolderWatchKind = 'chokidar' | 'plain';

/** Above this many entries a folder is watched without chokidar, which reads the whole folder again at every event. */
const CROWDED_ENTRIES = 250;

async function startChokidar(folder: string, listener: FolderListener): Promise<FolderWatch> {
  // Loaded only when something is watched: it costs a tenth of a second.
  const { watch } = await import('chokidar');
  const watcher = watch(folder, {
    depth: 0,
    persistent: false,
    ignoreInitial: true,
    followSymlinks: false,
    atomic: false,
    // The folder's own watch tells every name in it; watches on the files themselves would lose a file that is removed and made again.
    ignored: (path) => path !== folder,
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

async function startPlain(folder: string, listener: FolderListener): Promise<FolderWatch> {
  const watcher = watchPlainly(folder, { persistent: false });
  watcher.on('change', (_event, name) => listener(typeof name === 'string' ? name : undefined));
  watcher.on('error', () => listener(undefined));
  return { kind: 'plain', close: async () => watcher.close() };
}

/** How many entries a folder has, counted up to the first that makes it crowded. */
async function countEntries(folder: string): Promise<number> {
  let entries = 0;
  for await (const _entry of await opendir(folder, { bufferSize: 256 })) {
    entries += 1;
    if (entries > CROWDED_ENTRIES) break;
  }
  return entries;
}

/** Watches by chokidar for as long as the folder is not crowded: it is counted again once so many names were told that it may have become so. */
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
    watch = await startPlain(folder, listener);
    await before.close();
  }

  const started = startChokidar(folder, (name) => {
    listener(name);
    if (name === undefined || change !== undefined || told.add(name).size + counted <= CROWDED_ENTRIES) return;
    // Where the folder is gone or no watch is left, chokidar goes on; the next name that is told has it tried again.
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

/** Watches a folder, by chokidar unless `plain` is wanted or the folder is or becomes crowded; nothing below its subfolders, no links followed. */
export async function watchFolder(folder: string, wanted: FolderWatchKind, listener: FolderListener): Promise<FolderWatch> {
  if (wanted === 'plain') return startPlain(folder, listener);
  const entries = await countEntries(folder);
  return entries > CROWDED_ENTRIES ? startPlain(folder, listener) : startUntilCrowded(folder, entries, listener);
}

const BEAT_MS = 250;

/** A running check for stalls of the event loop. */
export interface StallMonitor {
  /** Idempotent. */
  close(): void;
}

/**
 * Calls `onStall` after the event loop stood still for `longestMs` or more, when notices of the system may have been lost unseen;
 * shorter stalls from `longestMs - 250` on may count. Keeps no process alive.
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

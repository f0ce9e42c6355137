import { watch as watchPlainly } from 'node:fs';
import { opendir } from 'node:fs/promises';

/** A watch on the names of one folder. */
export interface FolderWatch {
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
const CROWDED_ENTRIES = 1000;

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
  return { close: () => watcher.close() };
}

async function startPlain(folder: string, listener: FolderListener): Promise<FolderWatch> {
  const watcher = watchPlainly(folder, { persistent: false });
  watcher.on('change', (_event, name) => listener(typeof name === 'string' ? name : undefined));
  watcher.on('error', () => listener(undefined));
  return { close: async () => watcher.close() };
}

const STARTS: Readonly<Record<FolderWatchKind, StartFolderWatch>> = { chokidar: startChokidar, plain: startPlain };

async function isCrowded(folder: string): Promise<boolean> {
  let entries = 0;
  for await (const _entry of await opendir(folder, { bufferSize: 256 })) {
    entries += 1;
    if (entries > CROWDED_ENTRIES) return true;
  }
  return false;
}

/** Watches a folder, by chokidar unless `plain` is wanted or the folder is crowded; nothing below its subfolders, no links followed. */
export async function watchFolder(folder: string, wanted: FolderWatchKind, listener: FolderListener): Promise<FolderWatch> {
  const kind = wanted === 'chokidar' && (await isCrowded(folder)) ? 'plain' : wanted;
  return STARTS[kind](folder, listener);
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

import { importedSessions } from '../host/imported-sessions.js';
import { readWatchReport, type WatchReport, watchReportFile } from '../host/watch-report.js';
import type { FilesystemId } from '../objects/ids.js';
import type { AgentHome } from '../own-sessions/agent-homes.js';
import { findFiles } from '../own-sessions/find-files.js';
import { replaceFile } from '../process/owned-file.js';
import { messageOf } from '../values/thrown.js';
import { DiskVersions } from './disk-versions.js';
import type { Companion, WatchHost } from './followed.js';
import { Following } from './following.js';
import type { LiveFileOptions } from './live-file.js';
import type { WatchDatabase } from './watch-database.js';
import { acquireWatch } from './watch-process.js';
import { WatchedFolders } from './watched-folders.js';
import { WireSessions } from './wire-sessions.js';

/** Time limits of a process that follows sessions, in milliseconds. */
export interface WatchTimes extends LiveFileOptions {
  /** Time without a change and without work of companions after which the process ends. */
  readonly endMs: number;
}

/**
 * Entries that later lines could change are passed on after 300 ms. Transcripts are closed after 10
 * idle minutes.
 */
const TIMES: WatchTimes = { restMs: 300, idleMs: 600_000, endMs: 12 * 3_600_000 };

/** Options of a process that follows sessions. */
export interface WatchOptions {
  readonly dataDir: string;
  readonly database: WatchDatabase;
  /** Id of the filesystem that this process sees [§5.4]. */
  readonly filesystemId: FilesystemId;
  readonly homes: readonly AgentHome[];
  /** The user's home folder. */
  readonly home: string;
  readonly companions: readonly Companion[];
  /** Ends the process when it fires. */
  readonly signal: AbortSignal;
  /** Called when all folders are watched. */
  readonly onReady?: () => void;
  readonly times?: Partial<WatchTimes>;
}

/** Interval at which the process checks that its lock still exists, in milliseconds. */
const OWNING_MS = 1_000;

/**
 * Files that changed within this time before the first start are also followed, in milliseconds. A
 * hook of the first session starts this process, and a short session may end before the process is
 * ready.
 */
const FIRST_SESSION_MS = 60_000;

/** Maximum number of failures in the report. */
const MOST_NOTICES = 20;

/**
 * Follows the sessions of this user's agents until the signal fires or the process is idle for a
 * long time. Files that last changed more than a minute before the first start in this data folder
 * are ignored until they change.
 * @throws {WatchError} `running` – another process follows the sessions
 */
export async function runWatch(options: WatchOptions): Promise<void> {
  const { dataDir, database, filesystemId, homes, companions, signal, onReady } = options;
  const times = { ...TIMES, ...options.times };
  const lock = await acquireWatch(dataDir);
  const since = (await readWatchReport(dataDir))?.since ?? Date.now() - FIRST_SESSION_MS;
  const notices: WatchReport['notices'] = [];
  const over = new AbortController();
  let end: NodeJS.Timeout | undefined;
  const stayAwake = (): void => {
    clearTimeout(end);
    if (signal.aborted || over.signal.aborted) return;
    end = setTimeout(() => over.abort(), times.endMs);
  };
  const state = new WatchReportFile(dataDir, () => ({ since, ...following.state, notices }));
  const onNotice = (line: string): void => {
    notices.push({ at: Date.now(), line });
    notices.splice(0, notices.length - MOST_NOTICES);
    state.touch();
  };
  const { address, mask } = database;
  const disk = new DiskVersions({ address, mask, filesystemId, home: options.home, onNotice });
  const following = new Following({
    database,
    times,
    homes,
    disk,
    since,
    onNotice,
    onState: () => {
      stayAwake();
      state.touch();
    },
  });
  const wire = new WireSessions(database, dataDir);
  const host: WatchHost = { dataDir, onNotice, stayAwake, wire };
  const started: { close(): Promise<void> }[] = [];
  stayAwake();
  // If the data folder is deleted, nothing else ends a background process.
  const owning = setInterval(() => {
    if (!lock.isStillOurs()) over.abort();
  }, OWNING_MS);
  try {
    const folders = await WatchedFolders.start(homes, {
      onFile: (file) => following.changed(file),
      onGone: (path) => following.gone(path),
      onNotice,
    });
    started.push(folders);
    const noted = new Map([...(await importedSessions(dataDir)).values()].map((one) => [one.path, one]));
    for (const file of (await findFiles(homes)).files) {
      const known = noted.get(file.path);
      const isKnown = known?.size === file.size && known.mtime === file.mtime;
      if (file.mtime >= since && !isKnown) following.changed(file);
    }
    for (const companion of companions) {
      try {
        started.push(await companion(following, host));
      } catch (error) {
        onNotice(messageOf(error));
      }
    }
    await state.write();
    onReady?.();
    await aborted(AbortSignal.any([signal, over.signal]));
  } finally {
    clearTimeout(end);
    clearInterval(owning);
    await Promise.allSettled(started.reverse().map((one) => one.close()));
    await following.stop();
    await wire.close();
    await disk.close();
    await state.write();
    await database.close();
    lock.remove();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Minimum time between two writes of the report, in milliseconds. */
const WRITE_MS = 500;

type Facts = Omit<WatchReport, 'version' | 'pid'>;

/** Writes this process's report after changes, so that other processes can show it. */
class WatchReportFile {
  readonly #dataDir: string;
  readonly #facts: () => Facts;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(dataDir: string, facts: () => Facts) {
    this.#dataDir = dataDir;
    this.#facts = facts;
  }

  /** Writes the report soon. */
  touch(): void {
    this.#timer ??= setTimeout(() => void this.write(), WRITE_MS).unref();
  }

  /** Writes the report now. Ignores a failed write. */
  write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = JSON.stringify({ version: 1, pid: process.pid, ...this.#facts() });
    this.#writing = this.#writing
      .then(() => replaceFile(watchReportFile(this.#dataDir), `${text}\n`))
      .catch(() => undefined);
    return this.#writing;
  }
}

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

/** The times of a process that follows sessions, milliseconds. */
export interface WatchTimes extends LiveFileOptions {
  /** The process ends after this long without a change and without work of companions. */
  readonly endMs: number;
}

/**
 * A held entry is given out after 300 ms. A transcript that does not change for 10 minutes is
 * closed.
 */
const TIMES: WatchTimes = { restMs: 300, idleMs: 600_000, endMs: 12 * 3_600_000 };

/** The agents that a process follows, its database, and its end. */
export interface WatchOptions {
  readonly dataDir: string;
  readonly database: WatchDatabase;
  /** Identity of the filesystem that this process sees [§5.4]. */
  readonly filesystemId: FilesystemId;
  readonly homes: readonly AgentHome[];
  /** The user's home folder. */
  readonly home: string;
  readonly companions: readonly Companion[];
  /** Ends the process. */
  readonly signal: AbortSignal;
  /** Called once everything is watched. */
  readonly onReady?: () => void;
  readonly times?: Partial<WatchTimes>;
}

/** How often the process checks that its lock still exists, milliseconds. */
const OWNING_MS = 1_000;

/**
 * Files changed this long before the first start are still followed, milliseconds. A hook of the
 * first session starts this process, and a short session may end before it is ready.
 */
const FIRST_SESSION_MS = 60_000;

/** Maximum number of failures that the state shows. */
const MOST_NOTICES = 20;

/**
 * Follows the sessions of this user's agents until the signal fires, or until nothing has happened
 * for long. A file whose last change was more than a minute before the first start in this data
 * folder is ignored until it changes.
 * @throws {WatchError} `running` – another process follows them
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
  // The data folder may be deleted, and nothing else would end a process in the background.
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

/** Minimum time between two reports, milliseconds. */
const WRITE_MS = 500;

type Facts = Omit<WatchReport, 'version' | 'pid'>;

/** Writes this process's report soon after each change, so that other processes can show it. */
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

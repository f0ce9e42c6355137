import { posix } from 'node:path';
import type { Editor } from '../../objects/file-author.js';
import type { FilesystemSource } from '../../objects/source.js';
import { messageOf } from '../../values/thrown.js';
import type { FilesystemAccess } from '../access/access.js';
import { named } from '../access/errors.js';
import { ChangeQueue, type StillAtRest } from './change-queue.js';
import { isMarkOf } from './file-stamp.js';
import { type KnownContent, type TrackedFile, TrackedFolder, type TrackerState } from './track-folder.js';
import { monitorStalls, type StallMonitor, type StartFolderWatch, watchFolder } from './watch-folder.js';

/** Options of a file tracker; all times in milliseconds. */
export interface FileTrackerOptions {
  /**
   * Called when a source may have changed, appeared or vanished; reading it decides (decision C11).
   * Calls for one source never overlap: a change during a call is reported after it. If the
   * callback rejects, the next sweep reports the source again. After reading, the callback calls
   * `isStill` and drops its result if that returns false.
   */
  readonly onChange: (source: FilesystemSource, isStill: StillAtRest) => Promise<void>;
  /**
   * Called when the state of a source changes. Once `trackMany` has resolved, the method `state`
   * returns the first state.
   */
  readonly onState?: (source: FilesystemSource, state: TrackerState) => void;
  /** Called with one line for the user: a system limit, or a change that could not be processed. */
  readonly onNotice?: (message: string) => void;
  /** Maximum number of concurrent reports; default 8. */
  readonly concurrency?: number;
  /** Rest after which a write counts as complete; default 100. */
  readonly restMs?: number;
  /** Absence after which a file counts as deleted; default 500. */
  readonly absentMs?: number;
  /** Time after which a file is reported even if it never rests; default 2,000. */
  readonly longestSettleMs?: number;
  /** Time between sweeps; default 30,000. */
  readonly sweepMs?: number;
  /** Stall of the event loop that triggers a sweep; default and minimum 500. */
  readonly stallMs?: number;
  /** Watches a folder; default {@link watchFolder}. */
  readonly watch?: StartFolderWatch;
}

/** A source to track. */
export interface TrackRequest {
  readonly source: FilesystemSource;
  /**
   * The caller's last read of the source. If the file differs now, it is reported. By default, the
   * current state counts as known.
   */
  readonly known?: KnownContent;
}

/** The current state of a tracker. */
export interface FileTrackerStatus {
  readonly attached: number;
  readonly orphaned: number;
  readonly folders: number;
  /**
   * Number of attached folders that only the sweep checks, because the system has no watch left.
   */
  readonly sweptFolders: number;
}

const FOLDERS_AT_ONCE = 16;
const FIRST_RETRY_MS = 50;

const keyOf = (source: FilesystemSource, path: string): string => `${source.filesystemId}\0${path}`;

/**
 * Notices that tracked sources may have changed [§5.8, §5.9], without reading their content.
 * Watches their parent folders. A slow sweep finds changes whose events the system lost. Only
 * canonical paths inside the roots that this process can reach are watched. Other tracked paths
 * stay orphaned [§5.8]. Does not keep the process alive.
 */
export class FileTracker {
  readonly #access: FilesystemAccess;
  readonly #options: FileTrackerOptions;
  readonly #sweepMs: number;
  readonly #queue: ChangeQueue<TrackedFile>;
  readonly #stalls: StallMonitor;
  readonly #folders = new Map<string, TrackedFolder>();
  /** Sources that this process can never reach. They stay orphaned. */
  readonly #unreachable = new Set<string>();
  readonly #retries = new Map<TrackedFolder, NodeJS.Timeout>();
  readonly #leaving = new Set<Promise<void>>();
  readonly #reporting = new Map<string, Promise<void>>();
  #size = 0;
  #limited = false;
  #sweepTimer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;
  #nextSweep: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(access: FilesystemAccess, options: FileTrackerOptions) {
    this.#access = access;
    this.#options = options;
    this.#sweepMs = options.sweepMs ?? 30_000;
    this.#queue = new ChangeQueue({
      times: {
        restMs: options.restMs ?? 100,
        absentMs: options.absentMs ?? 500,
        longestMs: options.longestSettleMs ?? 2_000,
      },
      concurrency: options.concurrency ?? 8,
      report: (file, isStill) => this.#report(file, isStill),
      onFailure: ({ path }, error) => {
        options.onNotice?.(
          `${named(path)} changed but could not be processed; the next sweep retries it: ${messageOf(error)}`,
        );
      },
    });
    this.#stalls = monitorStalls(options.stallMs ?? 500, () => void this.sweep());
    this.#scheduleSweep();
  }

  /**
   * Tracks many sources. Resolves once each is attached or found to be orphaned. From then on, no
   * change is missed. Skips sources that are already tracked.
   */
  async trackMany(requests: Iterable<TrackRequest>): Promise<void> {
    if (this.#closing !== undefined) return;
    const added = new Map<TrackedFolder, TrackedFile[]>();
    for (const { source, known } of requests) {
      const folder = this.#folderFor(source);
      const name = posix.basename(source.path);
      if (folder === undefined || folder.files.has(name)) continue;
      const file: TrackedFile = { path: source.path, source, seen: undefined, baseline: known ?? 'as found' };
      folder.files.set(name, file);
      this.#size += 1;
      const files = added.get(folder);
      if (files === undefined) added.set(folder, [file]);
      else files.push(file);
    }
    await this.#eachFolder([...added.keys()], (folder) => folder.check(added.get(folder)));
  }

  /**
   * Returns whether the last seen state of a tracked source equals the caller's read, and no other
   * state was reported since. Later changes will be reported.
   */
  hasSeen(source: FilesystemSource, known: KnownContent): boolean {
    const file = this.#find(source);
    return file !== undefined && file.baseline === undefined && isMarkOf(file.seen, known);
  }

  /**
   * Reports a tracked source again when it is at rest, even if it has not changed. Meant for a
   * caller that may have an older state.
   */
  reportAgain(source: FilesystemSource): void {
    const file = this.#find(source);
    if (file === undefined) return;
    file.baseline = undefined;
    file.seen = undefined;
    this.#queue.hint(file);
  }

  /** Returns the editor that has just saved a tracked source. Undefined without evidence. */
  async editorOf(source: FilesystemSource): Promise<Editor | undefined> {
    const folder = this.#folders.get(keyOf(source, posix.dirname(source.path)));
    return folder?.traces.editorOf(posix.basename(source.path));
  }

  /** Stops tracking: no report on the source begins after this. */
  untrack(source: FilesystemSource): void {
    this.#unreachable.delete(keyOf(source, source.path));
    const key = keyOf(source, posix.dirname(source.path));
    const folder = this.#folders.get(key);
    const name = posix.basename(source.path);
    const file = folder?.files.get(name);
    if (folder === undefined || file === undefined) return;
    folder.files.delete(name);
    this.#size -= 1;
    this.#queue.drop(file);
    if (folder.files.size > 0) return;
    this.#folders.delete(key);
    this.#leave(folder);
  }

  /** Returns the state; undefined for a source that is not tracked. */
  state(source: FilesystemSource): TrackerState | undefined {
    if (this.#unreachable.has(keyOf(source, source.path))) return 'orphaned';
    const folder = this.#folders.get(keyOf(source, posix.dirname(source.path)));
    return folder?.files.has(posix.basename(source.path)) ? folder.state : undefined;
  }

  status(): FileTrackerStatus {
    const folders = [...this.#folders.values()];
    const attached = folders.filter(({ state }) => state === 'attached');
    const files = attached.reduce((sum, folder) => sum + folder.files.size, 0);
    return {
      attached: files,
      orphaned: this.#size - files + this.#unreachable.size,
      folders: folders.length,
      sweptFolders: attached.filter(({ watched }) => !watched).length,
    };
  }

  /**
   * Checks all tracked files and folders now. Resolves once all differences are queued for a
   * report.
   */
  sweep(): Promise<void> {
    if (this.#closing !== undefined) return Promise.resolve();
    if (this.#sweeping === undefined) {
      this.#sweeping = this.#sweep();
      return this.#sweeping;
    }
    // Waits for another sweep, because the running one may already have passed the caller's file.
    this.#nextSweep ??= this.#sweeping.then(() => {
      this.#nextSweep = undefined;
      return this.sweep();
    });
    return this.#nextSweep;
  }

  /** Ends all watching and waits for the running reports. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#stalls.close();
    clearTimeout(this.#sweepTimer);
    for (const folder of this.#folders.values()) this.#leave(folder);
    this.#folders.clear();
    this.#size = 0;
    await Promise.all([this.#queue.close(), this.#sweeping, ...this.#leaving]);
  }

  #find(source: FilesystemSource): TrackedFile | undefined {
    return this.#folders.get(keyOf(source, posix.dirname(source.path)))?.files.get(posix.basename(source.path));
  }

  #folderFor(source: FilesystemSource): TrackedFolder | undefined {
    const { roots, mounts } = this.#access;
    if (!mounts.isReachable(source.path, source.filesystemId) || !roots.holds(posix.dirname(source.path))) {
      this.#unreachable.add(keyOf(source, source.path));
      return undefined;
    }
    const path = posix.dirname(source.path);
    const key = keyOf(source, path);
    const existing = this.#folders.get(key);
    if (existing !== undefined) return existing;
    const folder = new TrackedFolder(path, {
      roots,
      start: this.#options.watch ?? watchFolder,
      onHint: (file) => this.#queue.hint(file),
      onFolder: (changed) => this.#retry(changed, FIRST_RETRY_MS),
      onState: (file, state) => this.#options.onState?.(file.source, state),
      onLimit: (errno) => this.#onLimit(errno),
    });
    this.#folders.set(key, folder);
    return folder;
  }

  /**
   * Reports a source. Two reports of a source never overlap, even if it was untracked and tracked
   * again during the first.
   */
  async #report(file: TrackedFile, isStill: StillAtRest): Promise<void> {
    const key = keyOf(file.source, file.path);
    while (this.#reporting.has(key)) await this.#reporting.get(key);
    if (this.#find(file.source) !== file) return;
    const reported = this.#options.onChange(file.source, isStill);
    this.#reporting.set(
      key,
      reported.catch(() => undefined),
    );
    try {
      await reported;
    } finally {
      this.#reporting.delete(key);
    }
  }

  /**
   * Checks a folder soon, and at growing intervals while it is missing. Checkouts remove folders
   * and recreate them.
   */
  #retry(folder: TrackedFolder, inMs: number): void {
    if (this.#closing !== undefined || this.#retries.has(folder)) return;
    const timer = setTimeout(() => {
      this.#retries.delete(folder);
      void folder.check().then(() => {
        // A folder without files is no longer tracked.
        if (folder.files.size > 0 && folder.state === 'orphaned' && inMs * 2 < this.#sweepMs)
          this.#retry(folder, inMs * 2);
      });
    }, inMs);
    timer.unref();
    this.#retries.set(folder, timer);
  }

  #leave(folder: TrackedFolder): void {
    clearTimeout(this.#retries.get(folder));
    this.#retries.delete(folder);
    const left = folder.close();
    this.#leaving.add(left);
    void left.finally(() => this.#leaving.delete(left));
  }

  #onLimit(errno: string): void {
    if (this.#limited) return;
    this.#limited = true;
    this.#options.onNotice?.(
      `no more folders can be watched (${errno}); the others are checked every ${Math.ceil(this.#sweepMs / 1000)} s; ` +
        'raise fs.inotify.max_user_watches or the limit of open files',
    );
  }

  #scheduleSweep(): void {
    this.#sweepTimer = setTimeout(() => void this.sweep().then(() => this.#scheduleSweep()), this.#sweepMs);
    this.#sweepTimer.unref();
    if (this.#closing !== undefined) clearTimeout(this.#sweepTimer);
  }

  async #sweep(): Promise<void> {
    await this.#eachFolder([...this.#folders.values()], (folder) => folder.check());
    this.#sweeping = undefined;
    this.#limited &&= this.status().sweptFolders > 0;
  }

  async #eachFolder(folders: readonly TrackedFolder[], work: (folder: TrackedFolder) => Promise<void>): Promise<void> {
    for (let at = 0; at < folders.length; at += FOLDERS_AT_ONCE) {
      await Promise.all(folders.slice(at, at + FOLDERS_AT_ONCE).map(work));
    }
  }
}

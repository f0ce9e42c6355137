import { posix } from 'node:path';
import type { FilesystemSource } from '../../objects/source.js';
import { systemCode } from '../../process/system-error.js';
import type { AllowedRoots } from '../access/roots.js';
import type { QueuedFile } from './change-queue.js';
import { EditorTraces } from './editor-save.js';
import { type FileStamp, folderIdentity, stampOf } from './file-stamp.js';
import type { FolderWatch, StartFolderWatch } from './watch-folder.js';

/** Whether changes of a source are noticed [§5.9]. */
export type TrackerState = 'attached' | 'orphaned';

/** The caller's read of a source before tracking. */
export interface KnownContent {
  readonly size: number;
  readonly mtimeMs: number;
}

/** A file of a tracked folder. */
export interface TrackedFile extends QueuedFile {
  readonly source: FilesystemSource;
  /**
   * The state that the first check compares the file with: the caller's read, or the state that the
   * check finds. `undefined` after that check.
   */
  baseline: KnownContent | 'as found' | undefined;
}

/** Dependencies of a tracked folder. */
export interface TrackedFolderOptions {
  readonly roots: AllowedRoots;
  readonly start: StartFolderWatch;
  /** Called when a file may have changed. */
  readonly onHint: (file: TrackedFile) => void;
  /** Called when the folder itself may be gone or replaced. */
  readonly onFolder: (folder: TrackedFolder) => void;
  readonly onState: (file: TrackedFile, state: TrackerState) => void;
  /**
   * Called when the system has no watch left (`ENOSPC`, `EMFILE`, `ENFILE`). Only the sweep then
   * checks the folder.
   */
  readonly onLimit: (errno: string) => void;
}

const LIMITS: ReadonlySet<string> = new Set(['ENOSPC', 'EMFILE', 'ENFILE']);
const AT_ONCE = 64;
/** A mark that no file has, so the next check reports the file. */
const NEVER_SEEN = 'never seen';

/**
 * One folder with tracked files. Its watch is attached and detached as the folder appears and
 * vanishes.
 */
export class TrackedFolder {
  readonly path: string;
  readonly files = new Map<string, TrackedFile>();
  readonly traces: EditorTraces;
  readonly #options: TrackedFolderOptions;
  #state: TrackerState = 'orphaned';
  #watch: FolderWatch | undefined;
  #identity: string | undefined;
  #work: Promise<void> = Promise.resolve();
  #checked = false;
  #closed = false;

  constructor(path: string, options: TrackedFolderOptions) {
    this.path = path;
    this.traces = new EditorTraces(path);
    this.#options = options;
  }

  get state(): TrackerState {
    return this.#state;
  }

  /** Whether the folder is watched, not only checked by the sweep. */
  get watched(): boolean {
    return this.#watch !== undefined;
  }

  /**
   * Attaches or detaches according to the folder's current state. Calls `onHint` for the given
   * files (default: all) that differ from their last seen state. Never rejects.
   */
  check(files?: Iterable<TrackedFile>): Promise<void> {
    this.#work = this.#work.then(() => this.#check(files));
    return this.#work;
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#work;
    await this.#detach();
  }

  async #check(files: Iterable<TrackedFile> | undefined): Promise<void> {
    if (this.#closed) return;
    const identity = await folderIdentity(this.#options.roots, this.path);
    const replaced = this.#watch === undefined || identity !== this.#identity;
    if (replaced) {
      await this.#detach();
      this.#become(identity !== undefined && (await this.#attach(identity)) ? 'attached' : 'orphaned');
    }
    // If the root or mount is absent, everything below is unreachable, not deleted.
    if (identity === undefined && !(await this.#options.roots.anchorPresent(this.path))) return this.#postpone();
    await this.#compare([...((replaced ? undefined : files) ?? this.files.values())]);
  }

  async #attach(identity: string): Promise<boolean> {
    try {
      const watch = await this.#options.start(this.path, (name) => this.#onName(name));
      this.#watch = watch;
      this.#identity = identity;
    } catch (error) {
      const errno = systemCode(error) ?? '';
      if (!LIMITS.has(errno)) return false;
      this.#options.onLimit(errno);
      return true;
    }
    // If the folder was replaced while the watch was set, the watch may be on the old folder.
    if ((await folderIdentity(this.#options.roots, this.path)) === identity) return true;
    await this.#detach();
    return false;
  }

  async #detach(): Promise<void> {
    const watch = this.#watch;
    this.#watch = undefined;
    this.#identity = undefined;
    await watch?.close();
  }

  #become(state: TrackerState): void {
    const changed = this.#checked && this.#state !== state;
    this.#state = state;
    this.#checked = true;
    if (!changed || this.#closed) return;
    for (const file of this.files.values()) this.#options.onState(file, state);
  }

  #onName(name: string | undefined): void {
    const file = name === undefined ? undefined : this.files.get(name);
    if (name !== undefined) this.traces.note(name);
    if (file !== undefined) this.#options.onHint(file);
    if (name === undefined || name === posix.basename(this.path)) this.#options.onFolder(this);
  }

  #postpone(): void {
    for (const file of this.files.values()) uncheckable(file);
  }

  async #compare(files: readonly TrackedFile[]): Promise<void> {
    for (let at = 0; at < files.length && !this.#closed; at += AT_ONCE) {
      const portion = files.slice(at, at + AT_ONCE);
      await Promise.all(portion.map((file) => this.#compareFile(file)));
    }
  }

  async #compareFile(file: TrackedFile): Promise<void> {
    const stamp = await stampOf(file.path);
    if (stamp === undefined) return uncheckable(file);
    if (file.baseline !== undefined) {
      file.seen = file.baseline === 'as found' || isKnown(stamp, file.baseline) ? stamp.mark : NEVER_SEEN;
      file.baseline = undefined;
    }
    if (stamp.mark !== file.seen) this.#options.onHint(file);
  }
}

/**
 * Marks a file that cannot be checked yet. It is reported once it can be checked, unless it then
 * equals the caller's read.
 */
function uncheckable(file: TrackedFile): void {
  if (file.baseline !== 'as found') return;
  file.baseline = undefined;
  file.seen = NEVER_SEEN;
}

function isKnown(stamp: FileStamp, known: KnownContent): boolean {
  return stamp.present?.size === known.size && stamp.present.mtimeMs === known.mtimeMs;
}

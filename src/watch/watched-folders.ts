import { readdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { type FolderWatch, watchPlain } from '../filesystem/tracking/watch-folder.js';
import type { AgentHome } from '../own-sessions/agent-homes.js';
import type { FoundFile } from '../own-sessions/find-files.js';
import { systemCode, unlessMissing } from '../process/system-error.js';

/** Callbacks of watched folders. */
export interface FolderListeners {
  /** Called when a file with a recording's name may have changed. */
  onFile(file: FoundFile): void;
  /** Called when a file or folder was removed. */
  onGone(path: string): void;
  /** Called with a line when a folder cannot be watched. */
  onNotice(line: string): void;
}

/**
 * Interval of polls for folders that do not exist yet or that the system cannot watch, in
 * milliseconds. An agent creates its folder on first use.
 */
const LOOK_MS = 500;

/** A folder in which an agent keeps sessions. */
interface Base {
  readonly home: AgentHome;
  readonly folder: string;
}

/**
 * Watches the folders in which agents keep their sessions, and all folders below. Also watches
 * folders that appear later, and reports their files.
 */
export class WatchedFolders {
  readonly #homes: readonly AgentHome[];
  readonly #listeners: FolderListeners;
  readonly #lookMs: number;
  readonly #watches = new Map<string, FolderWatch>();
  /** Folders that the system does not watch, with the time of their last poll. */
  readonly #unwatched = new Map<string, { readonly of: Base; at: number }>();
  #isClosed = false;
  #looking: NodeJS.Timeout | undefined;

  private constructor(homes: readonly AgentHome[], listeners: FolderListeners, lookMs: number) {
    this.#homes = homes;
    this.#listeners = listeners;
    this.#lookMs = lookMs;
  }

  /** Starts watching. Does not report files that already exist. */
  static async start(
    homes: readonly AgentHome[],
    listeners: FolderListeners,
    lookMs = LOOK_MS,
  ): Promise<WatchedFolders> {
    const folders = new WatchedFolders(homes, listeners, lookMs);
    await folders.#look(false);
    return folders;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#looking);
    await Promise.all([...this.#watches.values()].map((watch) => watch.close()));
  }

  /** Watches the homes' folders that exist and are not watched yet. */
  async #look(reports: boolean): Promise<void> {
    for (const home of this.#homes)
      for (const folder of home.folders)
        if (!this.#watches.has(folder)) await this.#add({ home, folder }, folder, reports);
    for (const [folder, one] of [...this.#unwatched]) {
      const since = one.at;
      one.at = Date.now();
      await this.#report(one.of, folder, since);
    }
    if (this.#isClosed) return;
    this.#looking = setTimeout(() => void this.#look(true), this.#lookMs);
    this.#looking.unref();
  }

  /** Watches a folder and those below. With `reports`, reports the files in them. */
  async #add(of: Base, folder: string, reports: boolean): Promise<void> {
    if (this.#isClosed || this.#watches.has(folder) || this.#unwatched.has(folder)) return;
    // An agent's database is directly in its home folder, so the folders below have no sessions.
    if (of.home.isDatabase === true && folder !== of.folder) return;
    const found = await unlessMissing(stat(folder)).catch(() => undefined);
    if (found?.isDirectory() !== true) return;
    try {
      const watch = await watchPlain(folder, (name) => void this.#changed(of, folder, name));
      if (this.#watches.has(folder) || this.#isClosed) return await watch.close();
      this.#watches.set(folder, watch);
    } catch (error) {
      const code = systemCode(error);
      if (code === undefined) throw error;
      if (code === 'ENOENT') return;
      this.#unwatched.set(folder, { of, at: Date.now() });
      this.#listeners.onNotice(`${folder} cannot be watched (${code}); it is polled every ${this.#lookMs} ms`);
    }
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) await this.#add(of, path, reports);
      else if (reports) await this.#report(of, path, 0);
    }
  }

  async #changed(of: Base, folder: string, name: string | undefined): Promise<void> {
    if (this.#isClosed) return;
    const path = name === undefined ? folder : join(folder, name);
    try {
      await this.#report(of, path, 0);
    } catch (error) {
      this.#listeners.onNotice(`a change of ${path} was not followed (${systemCode(error) ?? 'unknown error'})`);
    }
  }

  /** Reports a file, or the files below a folder, if they changed since a time. */
  async #report(of: Base, path: string, since: number): Promise<void> {
    const found = await unlessMissing(stat(path));
    if (found === undefined) {
      const gone = this.#watches.get(path);
      this.#watches.delete(path);
      this.#unwatched.delete(path);
      await gone?.close();
      this.#listeners.onGone(path);
    } else if (found.isDirectory()) {
      await this.#add(of, path, true);
      if (!this.#unwatched.has(path)) return;
      for (const entry of await readdir(path, { withFileTypes: true }))
        if (!entry.isDirectory()) await this.#report(of, join(path, entry.name), since);
        else await this.#add(of, join(path, entry.name), true);
    } else if (found.isFile() && found.mtimeMs >= since) {
      // SQLite first writes into a log next to the database.
      const changed = of.home.isDatabase === true ? path.replace(/-wal$/, '') : path;
      if (of.home.isRecording(join('/', relative(of.folder, changed))))
        this.#listeners.onFile({ home: of.home, path: changed, size: found.size, mtime: found.mtimeMs });
    }
  }
}

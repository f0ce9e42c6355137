import { stat } from 'node:fs/promises';
import { changedSessions, type DatabaseLook, StoredSessionsError } from '../lab/recordings/opencode/stored-sessions.js';
import type { FoundFile } from '../own-sessions/find-files.js';
import { unlessMissing } from '../process/system-error.js';
import { messageOf } from '../values/thrown.js';

/** Reading a database takes at most 1/`SHARE` of the process's time. */
const SHARE = 20;
/** Minimum pause between two reads, in milliseconds. */
const SHORTEST_MS = 300;

/** Callbacks about followed databases. */
interface DatabaseListeners {
  /** Called with a session that changed. Its path names both the database and the session. */
  onSession(file: FoundFile): void;
  /** Called with a line when a database cannot be read. */
  onNotice(line: string): void;
}

interface Looked {
  look: DatabaseLook;
  /** Sizes and times of the database's files at the last read. */
  files: string | undefined;
  timer: NodeJS.Timeout | undefined;
  /** The time from which the next read may begin. */
  at: number;
  failure: string | undefined;
}

/** Within this many milliseconds, a file may change twice and keep its modification time. */
const SAME_TIME_MS = 50;

/**
 * Returns the sizes and times of a database's files. Undefined if a file was written so recently
 * that they may not show the next change. An empty log does not count: opening a database may
 * create one.
 */
async function filesOf(path: string): Promise<string | undefined> {
  const [database, log] = await Promise.all([path, `${path}-wal`].map((one) => unlessMissing(stat(one))));
  const written = [database, ...(log === undefined || log.size === 0 ? [] : [log])];
  const isFresh = written.some((one) => one !== undefined && Date.now() - one.mtimeMs < SAME_TIME_MS);
  return isFresh ? undefined : written.map((one) => `${one?.ino} ${one?.size} ${one?.mtimeMs}`).join(' ');
}

/** Follows databases in which an agent keeps its sessions. Finds the sessions that changed. */
export class FollowedDatabases {
  readonly #since: number;
  readonly #listeners: DatabaseListeners;
  readonly #known = new Map<string, Looked>();
  #isStopped = false;

  /** Ignores sessions until they change after `since`, in milliseconds since 1970. */
  constructor(since: number, listeners: DatabaseListeners) {
    this.#since = since;
    this.#listeners = listeners;
  }

  /** Schedules a search for changed sessions. */
  changed(file: FoundFile): void {
    if (this.#isStopped) return;
    const known = this.#known.get(file.path) ?? {
      look: { since: this.#since, rows: new Set() },
      files: undefined,
      timer: undefined,
      at: 0,
      failure: undefined,
    };
    this.#known.set(file.path, known);
    known.timer ??= setTimeout(
      () => {
        void this.#look(file, known).catch((error: unknown) => {
          this.#listeners.onNotice(`${file.path} is not followed: ${messageOf(error)}`);
        });
      },
      Math.max(SHORTEST_MS, known.at - performance.now()),
    ).unref();
  }

  stop(): void {
    this.#isStopped = true;
    for (const { timer } of this.#known.values()) clearTimeout(timer);
  }

  async #look(file: FoundFile, known: Looked): Promise<void> {
    const files = await filesOf(file.path).finally(() => {
      known.timer = undefined;
    });
    if (this.#isStopped || (files !== undefined && files === known.files)) return;
    const began = performance.now();
    try {
      const { paths, look } = changedSessions(file.path, known.look);
      [known.look, known.files, known.failure] = [look, files, undefined];
      for (const path of paths) this.#listeners.onSession({ ...file, path });
    } catch (error) {
      if (!(error instanceof StoredSessionsError)) throw error;
      if (known.failure !== error.message) this.#listeners.onNotice(`${file.path} is not followed: ${error.message}`);
      known.failure = error.message;
    }
    const now = performance.now();
    known.at = now + SHARE * (now - began);
  }
}

import { stat } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { isNamedAfter } from '../host/followed-session.js';
import { ownId } from '../host/own-id.js';
import type { WatchReport } from '../host/watch-report.js';
import { RecordingError } from '../lab/recordings/open-recording.js';
import { storedSessionAt } from '../lab/recordings/opencode/stored-sessions.js';
import type { AgentHome } from '../own-sessions/agent-homes.js';
import { type FoundFile, findFiles } from '../own-sessions/find-files.js';
import { unlessMissing } from '../process/system-error.js';
import { pollUntil } from '../process/within-limit.js';
import { counted } from '../values/counted.js';
import { defined } from '../values/defined.js';
import type { Followed, FollowedSession, SessionPlace } from './followed.js';
import { FollowedDatabases } from './followed-databases.js';
import { Follower, type FollowerHost } from './follower.js';
import { readStart, type TranscriptStart } from './transcript-start.js';
import { NoTranscriptError, WatchError } from './watch-error.js';

/** Maximum number of transcripts whose first read runs at once. Each may be large. */
const READ_AT_ONCE = 4;
/** Maximum number of transcripts whose session is cached. */
const MOST_CHECKED = 1_000;
/** Maximum bytes of a JSON document in which a session is looked for. It is read whole. */
const LARGEST_START = 64 * 1_048_576;
/** Maximum wait for the transcript of a session that has just begun, in milliseconds. */
const WAIT_MS = 5_000;

/** The parts that all followed transcripts of a process share. */
export interface FollowingHost extends Omit<FollowerHost, 'first'> {
  readonly homes: readonly AgentHome[];
  /** Sessions in databases are followed only if they changed after this time. */
  readonly since: number;
  /** Called with a line about a database that cannot be read. */
  readonly onNotice: (line: string) => void;
}

/** The transcripts that this process follows, by path. */
export class Following implements Followed {
  readonly #homes: readonly AgentHome[];
  readonly #host: FollowerHost;
  readonly #followers = new Map<string, Follower>();
  readonly #databases: FollowedDatabases;
  /** For each transcript that an event named, the session that was found in it. */
  readonly #checked = new LRUCache<string, string>(counted(MOST_CHECKED));
  #isStopped = false;

  constructor({ homes, since, onNotice, ...host }: FollowingHost) {
    const limit = pLimit(READ_AT_ONCE);
    this.#databases = new FollowedDatabases(since, { onSession: (file) => this.changed(file), onNotice });
    this.#homes = homes;
    this.#host = { ...host, first: (work) => limit(work) };
  }

  /** Follows a file from now on. Reads it, because it may have changed. */
  changed(file: FoundFile): void {
    if (this.#isStopped) return;
    if (file.home.isDatabase === true && storedSessionAt(file.path) === undefined) this.#databases.changed(file);
    else this.#follower(file).changed();
  }

  /** Ends the import of a file that was removed. */
  gone(path: string): void {
    this.#followers.get(path)?.changed();
  }

  async session(agent: string, native: string, place: SessionPlace): Promise<FollowedSession> {
    const home = this.#homes.find((one) => one.agent === agent);
    if (home === undefined) {
      const known = this.#homes.map((one) => one.agent).join(', ');
      throw new WatchError('no-transcript', `No agent ${JSON.stringify(agent)} is followed; known: ${known}.`);
    }
    const file = await pollUntil(() => this.#find(home, native, place), { limitMs: WAIT_MS });
    if (file === undefined)
      throw new NoTranscriptError(
        'absent',
        `No transcript of the session ${native} of ${agent} appeared within ${WAIT_MS / 1_000} s. ` +
          `Looked for ${place.transcript ?? `a file with this id in ${home.folders.join(', ')}`}.`,
      );
    await this.#requireSession(file, native, place);
    const follower = this.#follower(file);
    // A hook may run before the transcript has more of the session than its id.
    const followed = await pollUntil(
      () =>
        follower.followed().catch((error: unknown) => {
          if (follower.isWaited) return undefined;
          throw error;
        }),
      { limitMs: WAIT_MS },
    );
    return followed ?? follower.followed();
  }

  async running(agent: string): Promise<readonly FollowedSession[]> {
    const active = [...this.#followers.values()].filter(({ file, isActive }) => isActive && file.home.agent === agent);
    const found = await Promise.allSettled(active.map((follower) => follower.followed()));
    return found.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  }

  /** Rejects a transcript that does not contain the session. An event may name any file. */
  async #requireSession(file: FoundFile, native: string, { transcript }: SessionPlace): Promise<void> {
    if (transcript === undefined || this.#checked.get(file.path) === native) return;
    const isReadable = file.path.endsWith('.jsonl') || (file.path.endsWith('.json') && file.size <= LARGEST_START);
    const start = isReadable ? await pollUntil(() => startOf(file), { limitMs: WAIT_MS }) : undefined;
    const ids = start === undefined ? [] : [start.native, start.id];
    // When Claude Code resumes a session, its new file begins with the earlier session's records.
    if (!ids.some((id) => ownId(id) === ownId(native)) && (start === undefined || !isNamedAfter(file.path, native)))
      throw new WatchError(
        'no-transcript',
        `The transcript ${file.path} has ${start === undefined ? 'no session' : `the session ${start.native}`}, ` +
          `and not ${native}.`,
      );
    this.#checked.set(file.path, native);
  }

  /** The transcripts that are being imported, and those whose import failed. */
  get state(): Pick<WatchReport, 'followed' | 'failed'> {
    const all = [...this.#followers.values()];
    return {
      followed: all.flatMap(({ isActive, session, folder, file: { home, path } }) =>
        isActive && session !== undefined ? [{ agent: home.agent, session, path, ...defined({ folder }) }] : [],
      ),
      failed: all.flatMap(({ failure, file: { path } }) => (failure === undefined ? [] : [{ path, reason: failure }])),
    };
  }

  /** Ends all imports at the current ends of their transcripts. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#databases.stop();
    await Promise.all([...this.#followers.values()].map((follower) => follower.stop()));
  }

  #follower(file: FoundFile): Follower {
    const known = this.#followers.get(file.path);
    if (known !== undefined) return known;
    const follower = new Follower(file, this.#host);
    this.#followers.set(file.path, follower);
    return follower;
  }

  async #find(home: AgentHome, native: string, { transcript }: SessionPlace): Promise<FoundFile | undefined> {
    if (transcript !== undefined) {
      const found = await unlessMissing(stat(transcript));
      const isThere = found?.isFile() === true && found.size > 0;
      return isThere ? { home, path: transcript, size: found.size, mtime: found.mtimeMs } : undefined;
    }
    const own = ownId(native);
    const known = [...this.#followers.values()].find(
      ({ file, session }) => file.home === home && (session === own || isNamedAfter(file.path, native)),
    );
    return (
      known?.file ?? (await findFiles([home])).files.find((file) => file.size > 0 && isNamedAfter(file.path, native))
    );
  }
}

/** Reads the beginning of a transcript. Undefined if its format is not known yet. */
const startOf = (file: FoundFile): Promise<TranscriptStart | undefined> =>
  readStart(file).catch((error: unknown) => {
    if (error instanceof RecordingError) return undefined;
    throw error;
  });

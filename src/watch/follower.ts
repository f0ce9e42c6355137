import { NO_MASK } from '../client/record-mask.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import { ownId } from '../host/own-id.js';
import { steeredState } from '../host/steered-sessions.js';
import { RecordingError } from '../lab/recordings/open-recording.js';
import type { ReplayEngine } from '../lab/replay/replay-engine.js';
import type { SessionId } from '../objects/ids.js';
import { AGENT_NAMES } from '../own-sessions/agent-homes.js';
import type { FoundFile } from '../own-sessions/find-files.js';
import { importSession, type LiveImport } from '../own-sessions/import-session.js';
import { readRecording } from '../own-sessions/read-facts.js';
import { defined } from '../values/defined.js';
import { begun } from '../values/promises.js';
import { messageOf } from '../values/thrown.js';
import type { DiskVersions } from './disk-versions.js';
import type { FollowedSession } from './followed.js';
import { LiveFile, type LiveFileOptions, RewrittenError } from './live-file.js';
import { isWholeDocument, LiveTitle, presentFile, readStart, type TranscriptStart } from './transcript-start.js';
import type { WatchDatabase } from './watch-database.js';
import { NoTranscriptError, WatchError } from './watch-error.js';

/** The parts that all followers of a process share. */
export interface FollowerHost {
  readonly database: WatchDatabase;
  readonly times: LiveFileOptions;
  readonly disk: DiskVersions;
  /** Runs the first read of a transcript. Only a few of these run at once. */
  first<T>(work: () => Promise<T>): Promise<T>;
  /** Called when a follower's state has changed. */
  onState(): void;
}

/** The first and the longest pause after failures, in milliseconds. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
/**
 * Maximum bytes of a transcript that is one JSON document. It is parsed whole after each change.
 */
const LARGEST_DOCUMENT = 64 * 1_048_576;
/** After a document is read, the next read waits this many times as long as the read took. */
const REST_PER_READ = 5;
/** Maximum number of attempts to get a session that keeps closing while a caller waits for it. */
const MOST_TRIES = 5;

interface Running {
  readonly start: TranscriptStart;
  readonly live: LiveFile | undefined;
  engine: ReplayEngine | undefined;
  client: ContextClient | undefined;
}

/**
 * Follows one transcript. Imports it while it grows, closes it when it has not changed for a long
 * time, and begins again at the next change. A failure is retried with increasing delays.
 */
export class Follower {
  readonly file: FoundFile;
  /** Why the last import failed. Undefined if it did not fail. */
  failure: string | undefined;
  readonly #host: FollowerHost;
  #session: SessionId | undefined;
  #run: Promise<void> | undefined;
  #running: Running | undefined;
  #isChanged = false;
  #isStopped = false;
  #isSteered = false;
  /** Whether the session was begun in another way, without this transcript. */
  #isLeft = false;
  #pauseMs = FIRST_PAUSE_MS;
  /** Time before which a document is read again only on a caller's request. */
  #restUntil = 0;
  #retry: NodeJS.Timeout | undefined;
  /** Resolves when the running import has opened its file or has failed. */
  #started: Promise<void> = Promise.resolve();

  constructor(file: FoundFile, host: FollowerHost) {
    this.file = file;
    this.#host = host;
  }

  /** The session that was written last. After a rewind, it is the branch that continues. */
  get session(): SessionId | undefined {
    const { engine, start } = this.#running ?? {};
    return (start === undefined ? undefined : engine?.sessionOf(start.native)?.id) ?? this.#session;
  }

  /** The session's folder, while an import runs. */
  get folder(): string | undefined {
    return this.#running?.start.folder;
  }

  /** Whether an import runs. */
  get isActive(): boolean {
    return this.#run !== undefined;
  }

  /** Whether the session may still appear in the next lines of the transcript. */
  get isWaited(): boolean {
    return this.failure === undefined && !this.#isSteered && !this.#isStopped;
  }

  /**
   * Reads the transcript soon, because it may have changed. With `now`, reads even a JSON document
   * immediately.
   */
  changed(now = false): void {
    if (this.#isStopped) return;
    this.#isChanged = true;
    clearTimeout(this.#retry);
    this.#retry = undefined;
    const rest = now ? 0 : this.#restUntil - performance.now();
    if (this.#run !== undefined) this.#running?.live?.ring();
    else if (rest > 0) this.#again(rest);
    else this.#begin();
  }

  #again(ms: number): void {
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.changed();
    }, ms);
  }

  /**
   * Reads the transcript up to its current end and returns its session.
   * @throws {WatchError} `no-transcript`
   */
  async followed(): Promise<FollowedSession> {
    const { home } = this.file;
    const catchUp = async (): Promise<void> => {
      await this.#caughtUp();
    };
    await catchUp();
    const native = this.#running?.start.native;
    const sessionNow = (): ContextSession | undefined =>
      native === undefined ? undefined : this.#running?.engine?.sessionOf(native);
    if (native === undefined || sessionNow() === undefined) throw this.#noSession();
    const client = await this.#client();
    const noSession = (): WatchError => this.#noSession();
    return {
      agent: home.agent,
      native,
      client,
      get session() {
        const session = sessionNow();
        if (session === undefined) throw noSession();
        return session;
      },
      catchUp,
    };
  }

  /**
   * Returns the client for the session's files. If the folder is unknown, the client reads no
   * files.
   */
  async #client(): Promise<ContextClient> {
    // The folder comes only from the transcript, because the agent may have changed its current
    // folder.
    const folder = this.#running?.start.folder;
    const none = this.#running?.client;
    if (none === undefined) throw this.#noSession();
    // The folder may have been removed.
    return folder === undefined ? none : this.#host.disk.at(folder).catch(() => none);
  }

  /** Ends the import at the current end of the transcript. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#retry);
    this.#running?.live?.end();
    await this.#run;
  }

  async #caughtUp(): Promise<void> {
    for (let tries = 1; tries <= MOST_TRIES && !this.#isStopped; tries += 1) {
      this.changed(true);
      const run = this.#run;
      await this.#started;
      const live = this.#running?.live;
      const isDone = await (live === undefined
        ? run?.then(() => true)
        : live.caughtUp().then(
            () => true,
            () => false,
          ));
      if (isDone === true) return;
    }
    throw this.#noSession();
  }

  #noSession(): WatchError {
    const why = this.failure ?? (this.#isSteered ? 'a gateway records its session' : 'it has no session yet');
    const message = `The transcript ${this.file.path} is not followed: ${why}.`;
    return this.#isLeft ? new NoTranscriptError('left', message) : new WatchError('no-transcript', message);
  }

  #begin(): void {
    let onStart: () => void = () => undefined;
    this.#started = new Promise((resolve) => {
      onStart = resolve;
    });
    this.#run = this.#follow(onStart)
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        onStart();
        this.#running?.live?.abandon();
        this.#running = undefined;
        this.#run = undefined;
        this.#host.onState();
        if (this.#isChanged && this.#retry === undefined && !this.#isStopped) this.changed();
      });
    this.#host.onState();
  }

  #failed(error: unknown): void {
    if (error instanceof RewrittenError) {
      this.#isChanged = true;
      return;
    }
    this.failure = messageOf(error);
    // The file is not a transcript yet: wait for its next change.
    if (error instanceof RecordingError || this.#isStopped) {
      this.#isChanged = false;
      return;
    }
    this.#again(this.#pauseMs);
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
  }

  async #follow(onStart: () => void): Promise<void> {
    const { home, path } = this.file;
    const { database, times, first } = this.#host;
    this.#isChanged = false;
    const found = await presentFile(path);
    if (found === undefined) return;
    const began = performance.now();
    const isLines = path.endsWith('.jsonl');
    if (!isLines && found.size > LARGEST_DOCUMENT) {
      const size = `${Math.round(found.size / 1_048_576)} MB`;
      this.failure = `a document of ${size} is too large to follow; import it with palimpsest open`;
      return;
    }
    if (!isLines && !(await isWholeDocument(path))) return;
    const start = await readStart(this.file);
    if (start === undefined) return;
    // The gateway records the sessions that it steers, from their requests.
    this.#isSteered = (await steeredState(database.dataDir, ownId(start.id))) !== undefined;
    if (this.#isSteered) {
      this.failure = undefined;
      return;
    }
    const read = isLines ? undefined : (await readRecording(this.file, { withUse: false, mask: database.mask })).read;
    const live = isLines ? new LiveFile(path, times) : undefined;
    const running: Running = { start, live, engine: undefined, client: undefined };
    const title = new LiveTitle(start.title, (await database.mask()) ?? NO_MASK);
    const chosen = {
      id: start.id,
      agent: AGENT_NAMES[home.agent],
      title: read !== undefined && 'facts' in read ? read.facts.title : title.text,
      path,
      size: found.size,
      mtime: found.mtime,
      ...defined({
        folder: start.folder,
        subagentOf: start.parent?.relation === 'subagent' ? start.parent.native_id : undefined,
      }),
    };
    this.#running = running;
    onStart();
    let imported: ReturnType<typeof importSession> | undefined;
    await first(async () => {
      imported = begun(
        database.use((into) =>
          importSession(chosen, {
            ...into,
            ...defined({ live: live === undefined ? undefined : this.#liveImport(running, live, title) }),
          }),
        ),
      );
      await Promise.race([imported, live?.caughtUp() ?? imported]).catch(() => undefined);
    });
    if (imported === undefined) return;
    const { outcome, session } = await imported;
    this.#session = session;
    this.#isLeft = outcome === 'recorded';
    if (this.#isLeft)
      this.failure = `the session ${session} began without it, for example from requests, and continues that way`;
    if (live === undefined) this.#restUntil = performance.now() + REST_PER_READ * (performance.now() - began);
    const now = await presentFile(path);
    if (now === undefined || outcome === 'recorded') this.#isChanged = false;
    else if (live !== undefined) this.#isChanged = now.size !== live.read.size || now.mtime !== live.read.mtime;
  }

  #liveImport(running: Running, live: LiveFile, title: LiveTitle): LiveImport {
    return {
      source: () => live.source(),
      onBegin: (session, { engine, client }) => {
        running.engine = engine;
        running.client = client;
        this.#session = session;
        this.failure = undefined;
        this.#pauseMs = FIRST_PAUSE_MS;
        this.#host.onState();
      },
      onEntry: (entry) => {
        title.take(entry);
        // After a rewind, the transcript continues in another session.
        if (entry.kind === 'event') this.#host.onState();
      },
      disk: this.#host.disk,
      ended: () => ({ title: title.text, ...live.read }),
    };
  }
}

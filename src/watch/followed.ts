import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { WireSessions } from './wire-sessions.js';

/** A session of an agent whose transcript this process follows. */
export interface FollowedSession {
  /** The agent's key, such as `claude-code`. */
  readonly agent: string;
  /** The agent's own id of the session. */
  readonly native: string;
  /** The open session. It closes after a long time without a change; `catchUp` reopens it. */
  readonly session: ContextSession;
  /** A client for the files below the session's folder, under this machine's filesystem id. */
  readonly client: ContextClient;
  /** Reads the transcript up to its current end. Resolves when the steps are recorded. */
  catchUp(): Promise<void>;
}

/** The place of a session, as far as a hook or the gateway knows it. */
export interface SessionPlace {
  /** The path of the transcript. It must contain the session. */
  readonly transcript?: string;
  /** The agent's own id of the parent session, if this session belongs to a sub-agent. */
  readonly parent?: string;
}

/** The sessions that `palimpsest watch` follows. No other process writes them. */
export interface Followed {
  /**
   * Returns a followed session, or begins to follow it. Waits for the first record of its
   * transcript.
   * @throws {WatchError} `no-transcript` – no such transcript appeared within the time limit
   */
  session(agent: string, native: string, place: SessionPlace): Promise<FollowedSession>;
  /** Returns an agent's sessions that are being recorded, each read up to its current end. */
  running(agent: string): Promise<readonly FollowedSession[]>;
}

/** The watcher's process, as a companion sees it. */
export interface WatchHost {
  readonly dataDir: string;
  /** Called with a line about a failure. `doctor` shows the last ones. */
  readonly onNotice: (line: string) => void;
  /** The sessions of clients without a transcript. */
  readonly wire: WireSessions;
  /** Restarts the idle time after which the process ends. Call it whenever there was work. */
  readonly stayAwake: () => void;
}

/**
 * Starts further work in the process of `palimpsest watch`, such as the socket of hooks or the
 * reader of the gateway's log. If it rejects, the process still follows transcripts.
 */
export type Companion = (followed: Followed, host: WatchHost) => Promise<{ close(): Promise<void> }>;

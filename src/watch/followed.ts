import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { WireSessions } from './wire-sessions.js';

/** A session of an agent whose transcript this process follows. */
export interface FollowedSession {
  /** The agent's key, such as `claude-code`. */
  readonly agent: string;
  /** The agent's own id of the session. */
  readonly native: string;
  /**
   * The open session. It closes if the transcript does not change for long; `catchUp` reopens it.
   */
  readonly session: ContextSession;
  /** A client whose files are those below the working folder, under this machine's filesystem. */
  readonly client: ContextClient;
  /** Reads the transcript up to its present end. Resolves once its steps are recorded. */
  catchUp(): Promise<void>;
}

/** Facts by which a hook or a gateway finds a session. */
export interface SessionPlace {
  /** The path of the transcript. It must contain the requested session. */
  readonly transcript?: string;
  /** The agent's own id of the session that started this one as a sub-agent. */
  readonly parent?: string;
}

/** The sessions that `palimpsest watch` follows. It alone writes them. */
export interface Followed {
  /**
   * Finds a session, or begins to follow it. Waits until its transcript has a first record.
   * @throws {WatchError} `no-transcript` – no such transcript came within the time limit
   */
  session(agent: string, native: string, place: SessionPlace): Promise<FollowedSession>;
  /** Returns the sessions of an agent that are being recorded, read up to their present ends. */
  running(agent: string): Promise<readonly FollowedSession[]>;
}

/** The process that a companion runs in. */
export interface WatchHost {
  readonly dataDir: string;
  /** Takes one line about a failure. `doctor` shows the last ones. */
  readonly onNotice: (line: string) => void;
  /** Sessions of clients without a transcript. */
  readonly wire: WireSessions;
  /** Postpones the end of an idle process. Call it whenever there was work. */
  readonly stayAwake: () => void;
}

/**
 * Work that runs in the process of `palimpsest watch` beside the transcripts, such as the socket of
 * hooks or the reader of the gateway's log. Rejects if it cannot start; the transcripts are
 * followed nevertheless.
 */
export type Companion = (followed: Followed, host: WatchHost) => Promise<{ close(): Promise<void> }>;

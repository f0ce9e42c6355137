import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { BorrowedSession } from '../client/session/session-registry.js';
import { clientFolder } from '../process/data-folder.js';
import { withinLimit } from '../process/within-limit.js';
import { NO_TELEMETRY, type Telemetry } from '../telemetry/telemetry.js';
import { CodedError } from '../values/coded-error.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import { describeAddress, parseNodeUrls } from '../xtdb/address.js';
import { isOutage, XtdbError } from '../xtdb/errors.js';
import type { AskedCall, WatchedSession } from './followed-session.js';
import type { Logger } from './log.js';
import type { OpenClient } from './open-client.js';
import type { SessionView } from './session-view.js';
import { isDurable, type ServerSettings } from './settings.js';

/**
 * Maximum time in milliseconds, counted from the beginning of a start, that a call waits before the
 * journal serves it. Our own node takes seconds to start, but 200 ms suffice to detect a missing
 * Java. `doubtful` applies to remote nodes and after a failed start.
 */
const START_WAIT_MS = { starting: 200, doubtful: 1_500 } as const;
/**
 * Interval in milliseconds at which a resume reports its progress. A faster resume reports nothing.
 */
const REPORT_EVERY_MS = 500;
const RETRY = 'the database could not be started; the next call retries';
const AWAY = 'no node answers; new sessions are kept in the journal until one answers; each call checks again';

/**
 * Whether a start failed because no node answers. False for a node that must not be used, such as
 * one with another format.
 */
const isAway = (error: unknown): error is XtdbError => isOutage(error) && !(error.cause instanceof CodedError);

/** Adds the addresses and the remedy to the error. */
function whereNobodyAnswers(error: XtdbError, nodeUrl: string): XtdbError {
  const addresses = parseNodeUrls(nodeUrl).map(describeAddress).join(', ');
  const next =
    `XTDB_URL names ${addresses}, but none answers: start a node there or correct the address; palimpsest doctor ` +
    'shows the state of each. Until then, new sessions without a name are kept in the journal. Named sessions ' +
    'wait, because their past must be read';
  return new XtdbError(error.code, `${error.message} ${next}.`, { cause: error.cause });
}

/** A session in use by one connection, which must return it. */
export type SessionLoan = BorrowedSession<ContextSession>;

/**
 * Returns a function that reports at intervals how many of a resumed session's files have been
 * checked [§3.6]. Sends a last report only if there were earlier ones.
 */
export function resumeProgress(
  session: string,
  report: (message: string) => void,
  clock: () => number = () => performance.now(),
): (done: number, total: number) => void {
  let last = clock();
  let begun = false;
  return (done, total) => {
    if (done < total ? clock() - last < REPORT_EVERY_MS : !begun) return;
    begun = true;
    last = clock();
    report(`resuming session ${session}: ${done} of ${total} files checked`);
  };
}

/**
 * A server's node and client. The first request loads and starts them, and the next request retries
 * a failed start. The creator must close it.
 */
export class Backend {
  /** The server's telemetry sink. */
  readonly telemetry: Telemetry;
  readonly #settings: ServerSettings;
  readonly #log: Logger;
  readonly #listeners = new Set<(message: string) => void>();
  readonly #stop = new AbortController();
  #starting: Promise<ContextClient> | undefined;
  #opening: Promise<OpenClient> | undefined;
  #closing: Promise<void> | undefined;
  #client: ContextClient | undefined;
  #hasFailed = false;
  /** Whether no node answered at the last attempt. */
  #isAway = false;
  /** The last logged failure. */
  #told: unknown;
  #startedAt = 0;
  #progress = 'starting the database';

  constructor(settings: ServerSettings, log: Logger, telemetry: Telemetry = NO_TELEMETRY) {
    this.telemetry = telemetry;
    this.#settings = settings;
    this.#log = log;
  }

  /** Starts the node and the client in the background. */
  warmUp(): void {
    this.ready().catch((error: unknown) => this.#failed(error, 'error'));
  }

  /**
   * Returns the client once the database answers. `onProgress` receives messages about the start.
   * Rejects with the reason if the start fails.
   */
  async ready(onProgress?: (message: string) => void): Promise<ContextClient> {
    if (this.#closing !== undefined) throw new Error('this server is shutting down');
    if (onProgress !== undefined) {
      this.#listeners.add(onProgress);
      onProgress(this.#progress);
    }
    if (this.#starting === undefined) {
      this.#startedAt = performance.now();
      this.#starting = this.#start();
    }
    const starting = this.#starting;
    try {
      return await starting;
    } catch (error) {
      if (this.#starting === starting) this.#starting = undefined;
      this.#hasFailed = true;
      throw error;
    } finally {
      if (onProgress !== undefined) this.#listeners.delete(onProgress);
    }
  }

  /** The client, once the database has answered. Calls with it need not wait. */
  get client(): ContextClient | undefined {
    return this.#client;
  }

  /**
   * Returns the client. If there is a journal, does not wait for a slow start or for remote nodes
   * that do not answer. The journal then acknowledges calls, and they are delivered later. Rejects
   * if the start fails at once, for example without Java.
   */
  async usable(onProgress?: (message: string) => void): Promise<ContextClient> {
    const ready = this.ready(onProgress);
    if (!isDurable(this.#settings)) return ready;
    ready.catch((error: unknown) => this.#failed(error, 'warn'));
    const usable = ready.catch(async (error: unknown) => {
      const opened = isAway(error) ? await this.#opening : undefined;
      if (opened === undefined) throw error;
      return opened.client;
    });
    const isDoubtful = this.#hasFailed || this.#settings.nodeUrl !== undefined;
    const waitMs = START_WAIT_MS[isDoubtful ? 'doubtful' : 'starting'] - (performance.now() - this.#startedAt);
    // If no node answered before, calls do not wait for the next attempt.
    return withinLimit(
      usable,
      this.#isAway ? 0 : Math.max(0, waitMs),
      async () => (await this.#opening)?.client ?? usable,
    );
  }

  /**
   * Borrows a session by name. Opens or creates it if needed; without a name, creates a new one.
   * Connections that name the same session share it. `onProgress` reports how many files of a
   * resumed session have been checked. `takeBack` takes over a session that another process has
   * open, regardless of the settings.
   */
  async borrow(
    name: string | undefined,
    onProgress?: (message: string) => void,
    { takeBack = false }: { readonly takeBack?: boolean } = {},
  ): Promise<SessionLoan> {
    const client = name === undefined ? await this.usable() : await this.ready();
    const asked =
      name === undefined ? {} : { ...this.#resuming(name, onProgress), ...(takeBack ? { takeOver: true } : {}) };
    const { session, release } = await client.borrowSession(asked);
    const warn = (error: unknown): void =>
      this.#log.warn({ err: error, session: session.id }, 'a session did not close cleanly');
    return { session, release: () => release().catch(warn) };
  }

  /** Returns the session in which `palimpsest watch` records a call; see `followedSession`. */
  async followed(call: AskedCall): Promise<WatchedSession | undefined> {
    const { followedSession } = await import('./followed-session.js');
    const { node, nodeUrl } = this.#settings;
    return followedSession(clientFolder(node.dataDir, nodeUrl), call);
  }

  /** Opens a session that `palimpsest watch` writes; see `openSessionView`. */
  async view(session: WatchedSession): Promise<SessionView | undefined> {
    const client = await this.ready();
    const [{ openSessionView }, opened] = await Promise.all([import('./session-view.js'), this.#opening]);
    const { node, nodeUrl, roots, cwd, mounts, policy, tools, shareSessions } = this.#settings;
    return openSessionView(client.store, session, {
      address: async () => opened?.address() ?? Promise.reject(new Error('this server is shutting down')),
      dataDir: clientFolder(node.dataDir, nodeUrl),
      roots,
      cwd,
      mounts,
      policy,
      shareSessions,
      mask: client.mask,
      what: 'palimpsest',
      ...defined({ strict: tools.strict, shortIds: tools.shortIds }),
    });
  }

  /** Closes the client with its sessions, and releases the node. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #resuming(id: string, onProgress: ((message: string) => void) | undefined) {
    const report = (message: string): void => {
      this.#log.info(message);
      onProgress?.(message);
    };
    return { id, takeOver: this.#settings.takeOver, onProgress: resumeProgress(id, report) };
  }

  /** Logs a failed start once for all callers that wait, unless this server shuts down. */
  #failed(error: unknown, level: 'error' | 'warn'): void {
    if (this.#closing !== undefined || error === this.#told) return;
    this.#told = error;
    this.#log[level]({ reason: messageOf(error) }, isAway(error) ? AWAY : RETRY);
  }

  #report(message: string): void {
    this.#progress = message;
    this.#log.info(message);
    for (const listener of this.#listeners) listener(message);
  }

  async #start(): Promise<ContextClient> {
    this.#opening ??= this.#open();
    const { client } = await this.#opening.catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    await client.ready().catch((error: unknown) => {
      const { nodeUrl } = this.#settings;
      // A node that answers but must not be used does not count as away. Otherwise new sessions
      // would begin without the database.
      this.#isAway = nodeUrl !== undefined && isAway(error);
      throw nodeUrl !== undefined && isAway(error) ? whereNobodyAnswers(error, nodeUrl) : error;
    });
    this.#client = client;
    this.#isAway = false;
    this.#report('the database is ready');
    return client;
  }

  async #open(): Promise<OpenClient> {
    const { roots, cwd, mounts, agentFilesystemId, policy, durability, tools } = this.#settings;
    const { openClient } = await import('./open-client.js');
    return openClient(this.#settings, {
      roots,
      cwd,
      mounts,
      policy,
      durability,
      what: 'palimpsest',
      telemetry: this.telemetry,
      onNotice: (line) => this.#log.warn(line),
      onProgress: (message) => this.#report(message),
      signal: this.#stop.signal,
      ...defined({ agentFilesystemId, strict: tools.strict, shortIds: tools.shortIds }),
    });
  }

  async #close(): Promise<void> {
    this.#client = undefined;
    this.#stop.abort();
    await this.#starting?.catch(() => undefined);
    const opened = await this.#opening?.catch(() => undefined);
    const report = await opened?.close();
    if (report !== undefined && report.unflushed > 0) {
      this.#log.warn(
        { steps: report.unflushed },
        'steps wait in the journal; they are delivered as soon as the node answers',
      );
    }
  }
}

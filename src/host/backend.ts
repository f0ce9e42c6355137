import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { NodeHandle } from '../node/ensure-node.js';
import { clientFolder } from '../process/data-folder.js';
import { withinLimit } from '../process/within-limit.js';
import { defined } from '../values/defined.js';
import type { NodeAddress } from '../xtdb/address.js';
import type { Logger } from './log.js';
import { resumeProgress } from './resume-progress.js';
import type { ServerSettings } from './server-settings.js';

/**
 * How long after a start began a call waits for what becomes of it before it is served from the journal, milliseconds. A node of our own takes seconds
 * to start: just enough to hear that there is no Java. One that others run answers at once or not at all, and what failed before may fail again.
 */
const START_WAIT_MS = { starting: 200, doubtful: 1_500 } as const;

/** A session in use by one connection; whoever takes it gives it back. */
export interface SessionLoan {
  readonly session: ContextSession;
  release(): Promise<void>;
}

interface OpenSession {
  users: number;
  readonly opening: Promise<ContextSession>;
}

/**
 * The node, the client and the sessions behind a server. Nothing is loaded or started before it is asked for; a start that failed is tried again
 * at the next request. Whoever creates it closes it.
 */
export class Backend {
  readonly #settings: ServerSettings;
  readonly #log: Logger;
  readonly #listeners = new Set<(message: string) => void>();
  readonly #sessions = new Map<string, OpenSession>();
  readonly #leaving = new Set<Promise<unknown>>();
  readonly #stop = new AbortController();
  #starting: Promise<ContextClient> | undefined;
  #creating: Promise<ContextClient> | undefined;
  #client: ContextClient | undefined;
  #node: NodeHandle | undefined;
  #closing: Promise<void> | undefined;
  #isUp = false;
  #hasFailed = false;
  #startedAt = 0;
  #progress = 'starting the database';

  constructor(settings: ServerSettings, log: Logger) {
    this.#settings = settings;
    this.#log = log;
  }

  /** Starts node and client in the background. */
  warmUp(): void {
    this.ready().catch((error: unknown) =>
      this.#log.error({ reason: String(error) }, 'the database could not be started; the next call tries again'),
    );
  }

  /** The client, once the database answers; `onProgress` is told what is going on meanwhile. Rejects with the reason why it cannot be. */
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

  /** Whether calls need not wait. */
  get isReady(): boolean {
    return this.#isUp && this.#starting !== undefined;
  }

  /**
   * The client, without waiting for a database that takes its time where the journal makes that possible: calls are acknowledged there and delivered
   * later. A start that fails at once, as without Java, rejects here as well.
   */
  async usable(onProgress?: (message: string) => void): Promise<ContextClient> {
    const ready = this.ready(onProgress);
    if (!this.#isDurable) return ready;
    ready.catch((error: unknown) =>
      this.#log.warn({ reason: String(error) }, 'the database could not be started; the next call tries again'),
    );
    const isDoubtful = this.#hasFailed || this.#settings.nodeUrl !== undefined;
    const waitMs = START_WAIT_MS[isDoubtful ? 'doubtful' : 'starting'] - (performance.now() - this.#startedAt);
    return withinLimit(ready, Math.max(0, waitMs), () => this.#creating ?? ready);
  }

  /**
   * Takes a session by its name, opened or made if need be; without a name a new one. Connections that name the same session share it; whoever has it
   * opened is told how far its files have been looked at.
   */
  async borrow(name: string | undefined, onProgress?: (message: string) => void): Promise<SessionLoan> {
    const client = name === undefined ? await this.usable() : await this.ready();
    await Promise.allSettled(this.#leaving);
    if (name === undefined) {
      const opening = client.openSession();
      const session = await opening;
      const made: OpenSession = { users: 1, opening };
      this.#sessions.set(session.id, made);
      return this.#loan(client, session, made);
    }
    await this.#forgetLost(name);
    const open = this.#sessions.get(name) ?? { users: 0, opening: this.#open(client, name, onProgress) };
    open.users++;
    this.#sessions.set(name, open);
    try {
      return this.#loan(client, await open.opening, open);
    } catch (error) {
      open.users--;
      if (this.#sessions.get(name) === open) this.#sessions.delete(name);
      throw error;
    }
  }

  /** Closes the sessions, the client and the use of the node. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #open(client: ContextClient, id: string, onProgress: ((message: string) => void) | undefined): Promise<ContextSession> {
    const tell = (message: string): void => {
      this.#log.info(message);
      onProgress?.(message);
    };
    return client.openSession({ id, takeOver: this.#settings.takeOver, onProgress: resumeProgress(id, tell) });
  }

  /** A session that another process took over is opened anew by the next one who names it. */
  async #forgetLost(name: string): Promise<void> {
    const open = this.#sessions.get(name);
    const session = await open?.opening.catch(() => undefined);
    if (session?.isLost === true && this.#sessions.get(name) === open) this.#sessions.delete(name);
  }

  #loan(client: ContextClient, session: ContextSession, open: OpenSession): SessionLoan {
    let released: Promise<void> | undefined;
    const release = async (): Promise<void> => {
      open.users--;
      if (open.users > 0) return;
      if (this.#sessions.get(session.id) === open) this.#sessions.delete(session.id);
      const leaving = client
        .closeSession(session)
        .catch((error: unknown) => this.#log.warn({ err: error, session: session.id }, 'a session did not close cleanly'));
      this.#leaving.add(leaving);
      await leaving;
      this.#leaving.delete(leaving);
    };
    return {
      session,
      release: () => {
        released ??= release();
        return released;
      },
    };
  }

  #tell(message: string): void {
    this.#progress = message;
    this.#log.info(message);
    for (const listener of this.#listeners) listener(message);
  }

  async #start(): Promise<ContextClient> {
    this.#creating ??= this.#create();
    const client = await this.#creating.catch((error: unknown) => {
      this.#creating = undefined;
      throw error;
    });
    this.#client = client;
    await client.ready();
    this.#isUp = true;
    this.#tell('the database is ready');
    return client;
  }

  async #create(): Promise<ContextClient> {
    const { node, nodeUrl, roots, cwd, mounts, policy, tools } = this.#settings;
    const [{ ContextClient: Client }, { localFilesystemId }] = await Promise.all([
      import('../client/session/context-client.js'),
      import('../filesystem/access/filesystem-id.js'),
    ]);
    return Client.create({
      address: () => this.#address(),
      roots,
      cwd,
      mounts,
      policy,
      filesystemId: await localFilesystemId(node.dataDir),
      dataDir: clientFolder(node.dataDir, nodeUrl),
      journal: this.#isDurable,
      durability: this.#settings.durability,
      what: 'palimpsest',
      onNotice: (line) => this.#log.warn(line),
      ...defined({ strict: tools.strict, shortIds: tools.shortIds }),
    });
  }

  /** Whether acknowledged steps outlive this process: not for a database that forgets everything when it stops. */
  get #isDurable(): boolean {
    return this.#settings.nodeUrl !== undefined || this.#settings.node.profile !== 'memory';
  }

  /** Asked for at the first request and again whenever the node cannot be reached. */
  async #address(): Promise<NodeAddress> {
    if (this.#settings.nodeUrl !== undefined) {
      const { parseNodeUrl } = await import('../xtdb/address.js');
      return parseNodeUrl(this.#settings.nodeUrl);
    }
    const { ensureNode } = await import('../node/ensure-node.js');
    const before = this.#node;
    this.#node = await ensureNode({ ...this.#settings.node, signal: this.#stop.signal, onProgress: (message) => this.#tell(message) });
    await before?.release();
    return this.#node.address;
  }

  async #close(): Promise<void> {
    this.#stop.abort();
    await this.#starting?.catch(() => undefined);
    try {
      const report = await this.#client?.close();
      if (report !== undefined && report.unflushed > 0) {
        this.#log.warn({ steps: report.unflushed }, 'steps wait in the journal; the next process that uses this data folder delivers them');
      }
    } finally {
      await this.#node?.release();
    }
  }
}

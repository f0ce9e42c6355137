import { tmpdir } from 'node:os';
import { LRUCache } from 'lru-cache';
import { ContextClient } from '../client/session/context-client.js';
import type { SentRequest } from '../gateway/read-log.js';
import { recordSentAt } from '../gateway/record-sent.js';
import { requestHistory } from '../gateway/request-history.js';
import { HarnessSession } from '../harness/harness-session.js';
import { ownId } from '../host/own-id.js';
import { filesystemId, NO_FILESYSTEM } from '../objects/ids.js';
import { counted } from '../values/counted.js';
import type { WatchDatabase } from './watch-database.js';

/** Maximum number of sessions that stay open. */
const MOST_OPEN = 20;

interface OpenWireSession {
  readonly harness: HarnessSession;
  close(): Promise<void>;
}

/**
 * Sessions of clients that write no transcript. Their steps come from their requests, which repeat
 * the whole conversation.
 */
export class WireSessions {
  readonly #database: WatchDatabase;
  readonly #dataDir: string;
  readonly #open = new LRUCache<string, Promise<OpenWireSession>>({
    ...counted(MOST_OPEN),
    dispose: (session) => void session.then((one) => one.close()).catch(() => undefined),
  });

  constructor(database: WatchDatabase, dataDir: string) {
    this.#database = database;
    this.#dataDir = dataDir;
  }

  /**
   * Records the messages and calls of a request as steps, and the request as the context after
   * them. Returns false if the request's body has no conversation.
   */
  async record(native: string, request: SentRequest): Promise<boolean> {
    const history = requestHistory(request);
    if (history === undefined) return false;
    const { harness } = await this.#session(native);
    if (history.system !== undefined) await harness.setSystemPrompt(history.system);
    await harness.reportMessages(history.messages, { mode: 'history' });
    const { seq, turn } = harness.session.state;
    return (await recordSentAt(harness.session, request, { step: seq, turn })).outcome === 'recorded';
  }

  /** Closes all sessions. */
  async close(): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.allSettled(open.map(async (session) => (await session).close()));
  }

  #session(native: string): Promise<OpenWireSession> {
    const known = this.#open.get(native);
    if (known !== undefined) return known;
    const made = this.#begin(native);
    this.#open.set(native, made);
    made.catch(() => this.#open.delete(native));
    return made;
  }

  /** Opens a session that cannot read files, because only its client knows where they are. */
  async #begin(native: string): Promise<OpenWireSession> {
    const client = await ContextClient.create({
      address: this.#database.address,
      dataDir: this.#dataDir,
      roots: [tmpdir()],
      cwd: '/',
      filesystemId: NO_FILESYSTEM,
      agentFilesystemId: filesystemId(`wire-${native}`.slice(0, 100)),
      track: false,
      journal: false,
      what: 'palimpsest watch',
    });
    const session = await client.openSession({ id: ownId(native) });
    let release: () => void = () => undefined;
    const used = new Promise<void>((resolve) => {
      release = resolve;
    });
    // Keeps the database open until the session closes.
    void this.#database.use(() => used);
    return {
      harness: new HarnessSession(client, session, { delivered: 'gateway' }),
      close: async () => {
        await client.close();
        release();
      },
    };
  }
}

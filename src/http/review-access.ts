import type { ContextClient } from '../client/session/context-client.js';
import { SourceError } from '../filesystem/access/errors.js';
import { ownSession, requireSession } from '../history/rebuild/find-session.js';
import { parseReference } from '../history/rebuild/moment.js';
import type { Timeline } from '../history/rebuild/timeline.js';
import { type ObjectId, type SessionId, sessionId } from '../objects/ids.js';
import { parseSource } from '../objects/source.js';
import { SessionError } from '../session/errors.js';
import type { PastAccess } from './http-contract.js';
import { ApiError } from './problem.js';

/**
 * Access rules for questions about the past. They allow sessions that the server may open, and
 * files inside its folders. `all` allows everything, for the owner of the data folder.
 */
export class ReviewAccess implements PastAccess {
  readonly #client: ContextClient;
  readonly #timeline: Timeline;
  readonly #all: boolean;

  constructor(client: ContextClient, timeline: Timeline, all = false) {
    this.#client = client;
    this.#timeline = timeline;
    this.#all = all;
  }

  /**
   * @throws {SessionError} `other-roots` – the named session, with or without a moment, may not be
   *   opened here
   */
  async requireNamed(reference: string): Promise<void> {
    await this.requireSession(await requireSession(this.#timeline.present, parseReference(reference).name));
  }

  /** @throws {SessionError} `other-roots` – the session may not be opened here */
  async requireSession(session: SessionId): Promise<void> {
    await this.#client.requireRoots(session, this.#timeline.present);
  }

  /**
   * Rejects an object that must not be shown here.
   * @throws {SourceError} `outside-roots` – a file outside the folders of this server
   * @throws {SessionError} `other-roots` – an object of a session that may not be opened here
   */
  async requireObject(id: ObjectId): Promise<void> {
    if (this.#all) return;
    const own = await ownSession(this.#timeline.present, id);
    if (own !== undefined) return this.#client.requireRoots(own, this.#timeline.present);
    const head = (await this.#timeline.present.heads([id])).get(id);
    const source = parseSource(head?.document.source);
    if (source !== null && !this.#client.files.shows(source)) {
      throw new SourceError('outside-roots', `the file ${id} is outside the folders of this server`, {
        path: source.path,
      });
    }
  }

  /** Returns the findings whose sessions may be opened here. */
  async openable<T extends { readonly session: SessionId | string }>(found: readonly T[]): Promise<readonly T[]> {
    const sessions = [...new Set(found.map(({ session }) => sessionId(session)))];
    const allowed = await Promise.all(
      sessions.map((session) =>
        this.#client.requireRoots(session, this.#timeline.present).then(
          () => [session],
          (error: unknown) => {
            if (error instanceof SessionError) return [];
            throw error;
          },
        ),
      ),
    );
    const open = new Set<string>(allowed.flat());
    return found.filter(({ session }) => open.has(session));
  }

  /**
   * @throws {ApiError} `forbidden` – this server does not share sessions, and a query sees the
   *   whole database
   */
  requireShared(): void {
    if (this.#client.sharesSessions) return;
    throw new ApiError(
      'forbidden',
      'a query sees the sessions of all folders, but this server does not share them; start it with ' +
        '--share-sessions, or run palimpsest query',
    );
  }
}

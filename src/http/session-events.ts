import type { ServerResponse } from 'node:http';
import pLimit from 'p-limit';
import type { DisplayPaths } from '../assembly/metadata.js';
import { type StripPlace, stripChange, stripPlace } from '../history/ask/strip-changes.js';
import type { Logger } from '../host/log.js';
import type { SessionId } from '../objects/ids.js';
import type { ObjectStore } from '../store/object-store.js';
import { ApiError } from './problem.js';
import { stripChangeAnswer } from './review-answers.js';

/** How often the database is asked for its newest transaction while somebody follows a session, milliseconds. */
const LOOK_MS = 250;
/** How long a look waits after one that failed, as while the node is away. */
const FAILED_MS = 2_000;
/** How often somebody who follows hears that the server is still there. */
const BEAT_MS = 15_000;
/** How long somebody who does not read may take until he is let go of; he goes on with the id of the last event. */
const SLOW_MS = 60_000;
/** Streams of one server. */
const MOST_STREAMS = 64;

/** Somebody who follows a session. */
interface Follower {
  readonly response: ServerResponse;
  /** The transaction of the last event that was sent. */
  sent: number;
  /** Since when what was sent has not been taken, milliseconds of `performance.now`; undefined where it has, without end before the first event. */
  slowSince: number | undefined;
}

/** What is followed with. */
interface Watch {
  readonly store: ObjectStore;
  readonly paths: DisplayPaths;
}

/** Which session is followed, from where. */
export interface FollowRequest extends Watch {
  readonly session: SessionId;
  /** The transaction up to which the session is known; the newest where left out. */
  readonly after: number | undefined;
}

/** One session that is followed: one reader of the database, whoever listens. */
class FollowedSession {
  readonly #watch: Watch;
  readonly #session: SessionId;
  readonly #followers = new Set<Follower>();
  /** One look or catching up after another. */
  readonly #serial = pLimit(1);
  #place: StripPlace | undefined;

  constructor(watch: Watch, session: SessionId) {
    this.#watch = watch;
    this.#session = session;
  }

  get followers(): ReadonlySet<Follower> {
    return this.#followers;
  }

  /** Reads what came up to a transaction since the last look, and tells those who keep up. */
  look(txId: number): Promise<void> {
    return this.#serial(() => this.#look(txId));
  }

  add(follower: Follower): void {
    this.#followers.add(follower);
  }

  /** Begins to tell a follower what comes, and what came since a transaction. */
  tell(follower: Follower, after: number | undefined): Promise<void> {
    return this.#serial(async () => {
      const now = this.#place?.txId ?? -1;
      follower.sent = Math.min(after ?? now, now);
      follower.slowSince = undefined;
      await this.#catchUp(follower);
    });
  }

  remove(follower: Follower): void {
    this.#followers.delete(follower);
  }

  async #look(txId: number): Promise<void> {
    const { store, paths } = this.#watch;
    if (txId <= (this.#place?.txId ?? -1)) return;
    const present = store.newestAt(txId);
    if (this.#place === undefined) {
      this.#place = await stripPlace(present, this.#session);
      return;
    }
    const { change, place } = await stripChange(this.#place, { present, paths });
    this.#place = place;
    if (change === undefined) return;
    const text = eventText(txId, stripChangeAnswer(change));
    for (const follower of this.#followers)
      if (follower.slowSince === undefined) this.#send(follower, text, place.txId);
  }

  /** Sends one event; nothing more follows until it was taken, so that one event at most waits for somebody who does not read. */
  #send(follower: Follower, text: string, txId: number): void {
    const { response } = follower;
    if (response.destroyed) return;
    follower.sent = txId;
    if (response.write(text)) return;
    follower.slowSince = performance.now();
    response.once('drain', () => {
      follower.slowSince = undefined;
      // A failure ends the stream; whoever follows comes back with the id of his last event.
      this.#serial(() => this.#catchUp(follower)).catch(() => response.destroy());
    });
  }

  /** Tells a follower in one event what came since the last one that was sent to him. */
  async #catchUp(follower: Follower): Promise<void> {
    const { store, paths } = this.#watch;
    const now = this.#place?.txId ?? -1;
    if (follower.sent >= now || follower.slowSince !== undefined) return;
    const before = await stripPlace(store.newestAt(follower.sent), this.#session);
    const { change } = await stripChange(before, { present: store.newestAt(now), paths });
    if (change === undefined) follower.sent = now;
    else this.#send(follower, eventText(now, stripChangeAnswer(change)), now);
  }
}

const eventText = (txId: number, data: unknown): string =>
  `id: ${txId}\nevent: change\ndata: ${JSON.stringify(data)}\n\n`;

/**
 * What happens in sessions, told to those who follow them as server-sent events, whichever process records it: the database's newest transaction is asked for while somebody
 * follows, and each followed session is read once for all. The id of an event is its transaction: who comes back with the last one misses nothing. Who does not
 * read is sent nothing more until he has, and then everything in one event.
 */
export class SessionEvents {
  readonly #log: Logger;
  readonly #sessions = new Map<SessionId, FollowedSession>();
  #streams = 0;
  #looking: Promise<void> | undefined;
  #wake: () => void = () => undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** How many sessions are read, for how many streams. */
  get status(): { readonly sessions: number; readonly streams: number } {
    return { sessions: this.#sessions.size, streams: this.#streams };
  }

  /**
   * Answers with a stream of events until its reader goes away or `close` is called.
   * @throws {ApiError} `too-many-questions`
   * @throws {HistoryError} `unknown-session` – at the transaction from which on it is to be told
   * @throws {XtdbError}
   */
  async follow({ session, after, ...watch }: FollowRequest, response: ServerResponse): Promise<void> {
    if (this.#streams >= MOST_STREAMS)
      throw new ApiError(
        'too-many-questions',
        `${MOST_STREAMS} pages follow sessions already; close one and try again`,
      );
    this.#streams++;
    const followed = this.#sessions.get(session) ?? new FollowedSession(watch, session);
    this.#sessions.set(session, followed);
    const follower: Follower = { response, sent: -1, slowSince: Number.POSITIVE_INFINITY };
    followed.add(follower);
    const leave = (): void => {
      this.#streams--;
      followed.remove(follower);
      if (followed.followers.size === 0 && this.#sessions.get(session) === followed) this.#sessions.delete(session);
      if (this.#sessions.size === 0) this.#wake();
    };
    try {
      // Whoever asks learns of a session that is not there before anything is sent.
      await followed.look((await watch.store.latestTransaction()) ?? -1);
      if (response.destroyed) return leave();
      response.writeHead(200, {
        'content-type': 'text/event-stream',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      });
      response.flushHeaders();
      response.write('retry: 1000\n\n');
      await followed.tell(follower, after);
    } catch (error) {
      leave();
      throw error;
    }
    if (response.destroyed) return leave();
    response.once('close', leave);
    this.#looking ??= this.#lookOn(watch.store).finally(() => {
      this.#looking = undefined;
    });
  }

  /** Ends every stream. */
  close(): void {
    for (const followed of this.#sessions.values()) for (const { response } of followed.followers) response.end();
    this.#sessions.clear();
    this.#wake();
  }

  async #lookOn(store: ObjectStore): Promise<void> {
    let beatAt = performance.now();
    while (this.#sessions.size > 0) {
      const failed = await this.#lookOnce(store).then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      if (failed !== undefined) this.#log.warn({ err: failed.error }, 'a session that is followed could not be read');
      const now = performance.now();
      if (now - beatAt >= BEAT_MS) {
        beatAt = now;
        this.#beat(now);
      }
      await this.#pause(failed === undefined ? LOOK_MS : FAILED_MS);
    }
  }

  async #lookOnce(store: ObjectStore): Promise<void> {
    const txId = await store.latestTransaction();
    if (txId !== undefined) await Promise.all([...this.#sessions.values()].map((followed) => followed.look(txId)));
  }

  /** Tells those who keep up that there is nothing new, which also finds out who is gone; lets go of those who have not read for long. */
  #beat(now: number): void {
    for (const followed of this.#sessions.values()) {
      for (const { response, slowSince } of followed.followers) {
        if (slowSince === undefined) response.write(':\n\n');
        else if (now - slowSince > SLOW_MS) response.destroy();
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      timer.unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

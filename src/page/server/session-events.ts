import type { ServerResponse } from 'node:http';
import pLimit from 'p-limit';
import type { DisplayPaths } from '../../assembly/metadata.js';
import type { Logger } from '../../host/log.js';
import type { EventStreams, FollowRequest } from '../../http/http-contract.js';
import { ApiError } from '../../http/problem.js';
import type { SessionId } from '../../objects/ids.js';
import type { ObjectStore } from '../../store/object-store.js';
import { stripChangeAnswer } from './page-questions.js';
import { type StripPlace, stripChange, stripPlace } from './strip-changes.js';

/**
 * Interval at which the newest transaction is polled while a session is followed, in milliseconds.
 */
const LOOK_MS = 250;
/** Pause after a failed poll in milliseconds, for example while the node is down. */
const FAILED_MS = 2_000;
/** Interval of keep-alive events, milliseconds. */
const BEAT_MS = 15_000;
/**
 * Maximum time a client may leave its socket undrained before we close it, milliseconds. It can
 * resume with the id of the last event.
 */
const SLOW_MS = 60_000;
/** Maximum streams of one server. */
const MOST_STREAMS = 64;

/** A client that follows a session. */
interface Follower {
  readonly response: ServerResponse;
  /** The transaction of the last sent event. */
  sent: number;
  /**
   * Time since which sent data is undrained, in milliseconds of `performance.now`. Undefined if all
   * data is drained; infinite before the first event.
   */
  slowSince: number | undefined;
}

/** The dependencies of following. */
interface Watch {
  readonly store: ObjectStore;
  readonly paths: DisplayPaths;
}

/** One followed session, with one database reader for all followers. */
class FollowedSession {
  readonly #watch: Watch;
  readonly #session: SessionId;
  readonly #followers = new Set<Follower>();
  /** Serialises polls and catch-ups. */
  readonly #serial = pLimit(1);
  #place: StripPlace | undefined;

  constructor(watch: Watch, session: SessionId) {
    this.#watch = watch;
    this.#session = session;
  }

  get followers(): ReadonlySet<Follower> {
    return this.#followers;
  }

  /**
   * Reads changes since the last poll up to a transaction, and sends them to followers that keep
   * up.
   */
  look(txId: number): Promise<void> {
    return this.#serial(() => this.#look(txId));
  }

  add(follower: Follower): void {
    this.#followers.add(follower);
  }

  /** Starts sending changes to a follower. The first event has the changes since a transaction. */
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

  /**
   * Sends one event. The next event is sent only after this one is drained, so at most one event
   * waits for a slow client.
   */
  #send(follower: Follower, text: string, txId: number): void {
    const { response } = follower;
    if (response.destroyed) return;
    follower.sent = txId;
    if (response.write(text)) return;
    follower.slowSince = performance.now();
    response.once('drain', () => {
      follower.slowSince = undefined;
      // A failure ends the stream; the client resumes with the id of its last event.
      this.#serial(() => this.#catchUp(follower)).catch(() => response.destroy());
    });
  }

  /** Sends a follower all changes since its last event, as one event. */
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
 * Sends changes of sessions to followers as server-sent events, whichever process wrote them. While
 * a client follows, it polls the newest transaction and reads each followed session once for all
 * clients. An event's id is its transaction, so a client that resumes with the last id misses
 * nothing. A slow client gets no event until it drains, and then all changes as one event.
 */
export class SessionEvents implements EventStreams {
  readonly #log: Logger;
  readonly #sessions = new Map<SessionId, FollowedSession>();
  #streams = 0;
  #looking: Promise<void> | undefined;
  #wake: () => void = () => undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** The numbers of followed sessions and of streams. */
  get status(): { readonly sessions: number; readonly streams: number } {
    return { sessions: this.#sessions.size, streams: this.#streams };
  }

  /**
   * Answers with a stream of events until the client disconnects or `close` is called.
   * @throws {ApiError} `too-many-questions`
   * @throws {HistoryError} `unknown-session` – at the start transaction
   * @throws {XtdbError}
   */
  async follow({ session, after, ...watch }: FollowRequest, response: ServerResponse): Promise<void> {
    if (this.#streams >= MOST_STREAMS)
      throw new ApiError(
        'too-many-questions',
        `the limit of ${MOST_STREAMS} followed pages is reached; close one and retry`,
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
      // Reports a missing session before any data is sent.
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
      if (failed !== undefined) this.#log.warn({ err: failed.error }, 'a followed session could not be read');
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

  /**
   * Sends keep-alive events to clients that keep up. This also detects closed connections. Closes
   * clients that have not drained for too long.
   */
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

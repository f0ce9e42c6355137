import { setTimeout as delay } from 'node:timers/promises';
import type { PlacedRequest } from '../../client/session/session-contexts.js';
import type { LoopGuard } from '../../extensions/sidecar/loop-guard.js';
import type { WholeList } from '../../extensions/sidecar/sidecar-process.js';
import type { SessionId } from '../../objects/ids.js';
import { sameData } from '../../values/plain-data.js';
import { type MissedRequest, markMissed, unmarkMissed } from './left-requests.js';

/** Pause before another attempt to record, in milliseconds. */
const AGAIN_MS = 1_000;
/** Maximum wait for the database before an attempt, in milliseconds. */
const READY_MS = 5_000;
/** Maximum number of requests of a session that wait. Their bodies are in memory. */
const MOST_WAITING = 200;

/** The services that recording needs. */
interface MissedHost {
  readonly dataDir: string;
  readonly guard: Pick<LoopGuard, 'follow' | 'sent' | 'warmUp'>;
}

/**
 * The requests of one session that went out before they were recorded, oldest first. They are
 * recorded once the sidecar and the database work again. If this process is killed, a mark on disk
 * makes a later gateway record them from the log.
 */
export class MissedRequests {
  readonly #session: SessionId;
  readonly #host: MissedHost;
  /** The history of the newest request. */
  #newest: WholeList | undefined;
  /** Whether the newest history still has to be recorded. */
  #isMissing = false;
  #waiting: MissedRequest[] = [];
  /** Number of missed requests whose answers have not ended. */
  #open = 0;
  #isMarked = false;
  #isClosed = false;
  #running: Promise<void> | undefined;

  constructor(session: SessionId, host: MissedHost) {
    this.#session = session;
    this.#host = host;
  }

  /** Notes the history of a new request. It contains the histories of all earlier requests. */
  begin(list: WholeList): void {
    this.#newest = list;
    this.#isMissing = false;
  }

  /**
   * Notes that a request goes out before its history is recorded. `since` is the time of its
   * arrival. Resolves once a mark on disk shows it to later processes. Never rejects.
   */
  async missed(list: WholeList, since: number): Promise<void> {
    this.#open += 1;
    if (this.#newest === list) this.#isMissing = true;
    if (!this.#isMarked) {
      this.#isMarked = true;
      await markMissed(this.#host.dataDir, this.#session, since).catch(() => undefined);
    }
    this.#run();
  }

  /**
   * Notes that a missed request has ended. Omit `request` if no answer shows that the provider
   * accepted it.
   */
  ended(list: WholeList, request: PlacedRequest | undefined): void {
    this.#open -= 1;
    if (request !== undefined) this.#wait({ list, request });
    this.#run();
  }

  /** Stores a request whose place in the session is known. */
  store(request: PlacedRequest): void {
    this.#wait({ list: undefined, request });
    this.#run();
  }

  /**
   * Records requests that an earlier gateway left in its log. `newest` is the history of the last
   * of them, unless that request was recorded. Resolves at the end of the work.
   */
  async recover(requests: readonly MissedRequest[], newest: WholeList | undefined): Promise<void> {
    this.#isMarked = true;
    for (const one of requests) this.#wait(one);
    if (this.#newest === undefined && newest !== undefined) {
      this.#newest = newest;
      this.#isMissing = true;
    }
    await this.#run();
  }

  /**
   * Starts a last attempt to record everything that waits. Does not wait for the end of the
   * attempt.
   */
  close(): void {
    this.#isClosed = true;
    if (this.#isMissing && this.#newest !== undefined) void this.#host.guard.follow(this.#newest);
    for (const one of this.#stored()) void this.#host.guard.sent(one);
  }

  #wait(one: MissedRequest): void {
    this.#waiting.push(one);
    if (this.#waiting.length > MOST_WAITING) this.#waiting.shift();
  }

  /**
   * Returns the waiting requests for the sidecar. Leaves out requests whose messages are not in the
   * newest history.
   */
  #stored(): readonly Parameters<LoopGuard['sent']>[0][] {
    const newest = this.#newest?.messages ?? [];
    return this.#waiting.flatMap(({ list, request }) => {
      if (list === undefined) return [{ ...request, session: this.#session }];
      const { messages } = list;
      const isPart =
        messages.length <= newest.length &&
        messages.every((message, i) => message === newest[i] || sameData(message, newest[i]));
      return isPart ? [{ ...request, session: this.#session, messages: messages.length }] : [];
    });
  }

  #run(): Promise<void> {
    this.#running ??= this.#record().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #record(): Promise<void> {
    while (!this.#isClosed && (this.#isMissing || this.#waiting.length > 0)) {
      if (await this.#attempt()) continue;
      await delay(AGAIN_MS, undefined, { ref: false });
      if (!this.#isClosed) await this.#host.guard.warmUp(READY_MS);
    }
    if (this.#isClosed || !this.#isMarked || this.#open > 0) return;
    this.#isMarked = false;
    await unmarkMissed(this.#host.dataDir, this.#session).catch(() => undefined);
  }

  /** Records the newest history and the first waiting requests. Returns whether that succeeded. */
  async #attempt(): Promise<boolean> {
    const { guard } = this.#host;
    const newest = this.#newest;
    // A new request may begin at each `await`. Its history then replaces this one.
    if (this.#isMissing && newest !== undefined) {
      if (!(await guard.follow(newest))) return false;
      if (this.#newest === newest) this.#isMissing = false;
    }
    const waiting = [...this.#waiting];
    for (const one of this.#stored()) {
      if (this.#isClosed) return true;
      if (await guard.sent(one)) continue;
      // If the sidecar was restarted, it has to open the session first.
      this.#isMissing = this.#newest !== undefined;
      return false;
    }
    this.#waiting = this.#waiting.filter((one) => !waiting.includes(one));
    return true;
  }
}

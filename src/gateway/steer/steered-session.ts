import type { LoopContext } from '../../extensions/loop/loop-context.js';
import { composed } from '../../extensions/sidecar/composed-list.js';
import type { LoopGuard, Passage } from '../../extensions/sidecar/loop-guard.js';
import type { WholeList } from '../../extensions/sidecar/sidecar-process.js';
import { announcedIds } from '../../harness/history-item.js';
import { SteeredFile, type SteeredState, setSteered, wasSteered } from '../../host/steered-sessions.js';
import type { SessionId } from '../../objects/ids.js';
import { sameData } from '../../values/plain-data.js';
import { MissedRequests } from './missed-requests.js';
import { noneSeen, type ReadRequest } from './read-request.js';
import type { SteerableRequest, WireEntry } from './wire-request.js';

/**
 * How a request of a steered session was sent:
 * - `steered`: with our context
 * - `continued`: the last steered request again, with the client's messages since then
 * - `own`: the client's own list, without the thinking that the provider bound to a steered request
 * - `exact`: byte for byte as the client sent it
 */
export type HowSent = 'steered' | 'continued' | 'own' | 'exact';

/** A body to send, and how it was made. */
export interface SteeredBody {
  readonly how: HowSent;
  /** Undefined if it is the client's own body. */
  readonly body?: Buffer;
  /** Why the request does not have our context. */
  readonly why?: string;
  /** The step and turn of the session at which the context was made. */
  readonly at?: Passage<WireEntry>['at'];
  /** The history of a request that is sent before it is recorded. */
  readonly missed?: WholeList;
}

/** The services that a session needs from the gateway's steering. */
export interface SteeredHost {
  readonly dataDir: string;
  readonly guard: LoopGuard;
  /** Maximum wait of a model call for its context, in milliseconds. */
  readonly limitMs: number;
  /** Maximum wait of the first call of a session, which opens the session, in milliseconds. */
  readonly firstLimitMs: number;
  /** Prepares the gateway's log for a body that is about to be sent. */
  readonly prepare: ((body: Buffer) => void) | undefined;
  /** Returns why the session's last call was sent without our context. */
  readonly reasonOf: (session: SessionId) => string | undefined;
}

const NEW: SteeredState = { on: true, tidied: 0, steered: false, firstCalls: [] };
/**
 * Maximum number of first calls that are stored per session. After a compaction, a list begins with
 * another call.
 */
const MOST_FIRST_CALLS = 20;

function firstCallOf({ list }: SteerableRequest): string | undefined {
  const calling = list.list.messages.find((message) => announcedIds(message).length > 0);
  return calling === undefined ? undefined : announcedIds(calling)[0];
}

/** The context of the last steered request. */
interface LastSteered {
  readonly context: LoopContext;
  /** The client's own list at that request, as immutable copies. */
  readonly own: readonly WireEntry[];
}

/** One session whose requests get our context. Do not call its methods concurrently. */
export class SteeredSession {
  readonly id: SessionId;
  readonly #host: SteeredHost;
  readonly #seen = noneSeen();
  readonly #file: SteeredFile;
  #state: SteeredState | undefined;
  #frame: string | undefined;
  #last: LastSteered | undefined;
  #isOpen = false;
  #hasBegun = false;
  readonly #missed: MissedRequests;
  /** Whether we have checked if the history was steered in another session. */
  #isKnown = false;

  constructor(id: SessionId, host: SteeredHost) {
    this.id = id;
    this.#host = host;
    this.#missed = new MissedRequests(id, host);
    this.#file = new SteeredFile(host.dataDir, id);
  }

  /** The requests that went out before they were recorded. */
  get missed(): Pick<MissedRequests, 'ended' | 'store' | 'close'> {
    return this.#missed;
  }

  /** Records what an earlier gateway sent without recording it. See `MissedRequests.recover`. */
  async recover(...left: Parameters<MissedRequests['recover']>): Promise<void> {
    await this.#missed.recover(...left);
    // Release the session, because the agent may continue with another gateway.
    if (!this.#hasBegun) await this.#host.guard.release(this.id);
  }

  /**
   * Returns the body to send for a model call of the agent's own loop. `since` is the time of its
   * arrival.
   */
  async turn(read: ReadRequest, since: number): Promise<SteeredBody> {
    this.#hasBegun = true;
    // These reads of the disk and the database run while the request is parsed.
    this.#host.guard.announce(this.id);
    const following = this.#follow();
    const request = read({ session: this.id, seen: this.#seen });
    const state = await following;
    if ('why' in request) return { how: 'exact', why: request.why };
    await this.#noteInherited(request);
    const { guard, limitMs, firstLimitMs } = this.#host;
    const { list } = request.list;
    const missed = async (body: SteeredBody): Promise<SteeredBody> => {
      await this.#missed.missed(list, since);
      return { ...body, missed: list };
    };
    const why = state.on ? request.left : 'steering is off for the session';
    if (why !== undefined) {
      // The session is recorded even if it is not steered.
      this.#missed.begin(list);
      return missed(this.#own(request, why));
    }
    // If the tools change, the provider rejects earlier thinking. A new epoch drops it.
    if (this.#frame !== undefined && this.#frame !== request.frame) guard.again(this.id);
    this.#frame = request.frame;
    this.#missed.begin(list);
    let body: Buffer | undefined;
    const passage = await guard.pass(
      () => request.list,
      this.#isOpen ? limitMs : firstLimitMs,
      (messages) => {
        body = Buffer.from(request.write(messages));
        this.#host.prepare?.(body);
      },
    );
    if (passage === undefined || body === undefined) return missed(this.#without(request));
    this.#isOpen = true;
    this.#last = { context: passage.context, own: request.list.kept().messages };
    await this.#noteSteered(firstCallOf(request));
    return { how: 'steered', body, at: passage.at };
  }

  /** Returns the body for a side request, such as one for a summary. It may contain the history. */
  async side(read: ReadRequest): Promise<SteeredBody> {
    const { steered, on } = await this.#follow();
    const request = read({ session: this.id, seen: noneSeen() });
    if ('why' in request) return { how: 'exact', why: request.why };
    const { list } = request;
    const last = on ? this.#last : undefined;
    if (last !== undefined && this.#goesOn(last, list.messages))
      return { how: 'continued', body: Buffer.from(request.write(composed(list, last.context))) };
    if (!steered) return { how: 'exact' };
    return { how: 'own', body: Buffer.from(request.write(list.messages.map(list.withoutThoughts))) };
  }

  /** Returns the body to send if the context was not ready in time. */
  #without(request: SteerableRequest): SteeredBody {
    const { list } = request;
    const { guard, reasonOf } = this.#host;
    const why = reasonOf(this.id) ?? 'the request has no place for the context';
    const last = this.#last;
    const kept = { ...list, ...list.kept() };
    if (last === undefined || !this.#goesOn(last, kept.messages)) return this.#own(request, why);
    guard.continued(list, composed(kept, last.context));
    return { how: 'continued', body: Buffer.from(request.write(composed(list, last.context))), why };
  }

  #own({ list, write }: SteerableRequest, why: string): SteeredBody {
    const { guard } = this.#host;
    this.#last = undefined;
    if (this.#state?.steered === true) return { how: 'own', body: Buffer.from(write(guard.own(list))), why };
    guard.continued(list, list.kept().messages);
    return { how: 'exact', why };
  }

  #goesOn({ own }: LastSteered, messages: readonly WireEntry[]): boolean {
    return own.every((message, i) => message === messages[i] || sameData(message, messages[i]));
  }

  /** Reads and applies the session's steering state, which another process may have changed. */
  async #follow(): Promise<SteeredState> {
    const { dataDir, guard } = this.#host;
    const before = this.#state;
    const state = (await this.#file.state().catch(() => before)) ?? before ?? NEW;
    this.#state = state;
    if (before === undefined) {
      // From now on, the gateway records the session instead of the watcher.
      await setSteered(dataDir, this.id, state).catch(() => undefined);
      return state;
    }
    if (state.tidied > before.tidied) guard.tidy(this.id);
    if (state.on !== before.on) await guard.toggled(this.id, state.on);
    return state;
  }

  /** Records, before a request goes out, that the model's thinking may be bound to our context. */
  async #noteSteered(firstCall: string | undefined): Promise<void> {
    const state = this.#state ?? NEW;
    const isNew = firstCall !== undefined && !state.firstCalls.includes(firstCall);
    if (state.steered && !isNew) return;
    const firstCalls = isNew ? [...state.firstCalls, firstCall].slice(-MOST_FIRST_CALLS) : state.firstCalls;
    this.#state = { ...state, steered: true, firstCalls };
    await setSteered(this.#host.dataDir, this.id, this.#state);
  }

  /** Records, for a fork, that its thinking may be bound to a steered request of its parent. */
  async #noteInherited(request: SteerableRequest): Promise<void> {
    if (this.#isKnown) return;
    this.#isKnown = true;
    const firstCall = firstCallOf(request);
    if (firstCall === undefined || this.#state?.steered === true) return;
    const { dataDir } = this.#host;
    if (await wasSteered(dataDir, firstCall).catch(() => false)) await this.#noteSteered(firstCall);
  }
}

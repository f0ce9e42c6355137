import { createHash } from 'node:crypto';
import pLimit, { type LimitFunction } from 'p-limit';
import type { PlacedRequest } from '../../client/session/session-contexts.js';
import type { LoopGuard } from '../../extensions/sidecar/loop-guard.js';
import { ownId } from '../../host/own-id.js';
import type { SessionId } from '../../objects/ids.js';
import { messageOf } from '../../values/thrown.js';
import type { AnswerFacts } from '../answer-facts.js';
import { bodySpans } from '../body-spans.js';
import type { SteerFacts } from '../log-entries.js';
import { bodyPieces, proofOf } from '../record-sent.js';
import { factsOf, type RequestHead } from '../request-facts.js';
import { leftRequests } from './left-requests.js';
import { isSteerable, parsedText, readerOf } from './read-request.js';
import { type SteeredBody, SteeredSession } from './steered-session.js';

/** Options of a gateway's steering. */
export interface SteeringOptions {
  readonly dataDir: string;
  /** The share of sessions in the control arm, which is not steered, from 0 to 1. */
  readonly control: number;
  /** Maximum wait of a model call for its context, in milliseconds. */
  readonly limitMs: number;
  /** Maximum wait of a session's first model call, in milliseconds. */
  readonly firstLimitMs: number;
  /** Prepares the log for a body that is about to be sent. */
  readonly prepare?: (body: Buffer) => void;
  /** Creates the sidecar's guard. It calls `onBypass` for each model call without our context. */
  readonly guard: (onBypass: (session: string, reason: string) => void) => LoopGuard;
}

/** A request as it is sent to the upstream. */
export interface Outgoing {
  readonly body: Buffer;
  /** Undefined if the request belongs to no steered session and no session of the control arm. */
  readonly steer?: SteerFacts;
  /** Whether the session's steps up to this request are not recorded yet. */
  readonly isMissed?: boolean;
  /** Called once when the request has ended, with the facts of its answer if any. Never throws. */
  readonly answered?: (facts: AnswerFacts | undefined) => void;
}

/** The gateway's own answer to a request that it does not forward. */
export interface Refused {
  readonly status: number;
  readonly text: string;
}

/**
 * Imitates an upstream that does not support message threads. A request in a thread contains only
 * new messages. Without threads, the client sends the whole conversation, which the gateway needs
 * to steer.
 */
const NO_THREADS: Refused = {
  status: 400,
  text: JSON.stringify({
    type: 'error',
    error: {
      type: 'invalid_request_error',
      message:
        'capability_rejected: beta_header:message-threads-2026-08-12 is not supported while Palimpsest steers the ' +
        'session; send the whole conversation',
      details: { error_code: 'thread_unsupported_request' },
    },
  }),
};

/**
 * Returns whether a session belongs to the control arm, whose requests are never changed. The hash
 * of the session's id decides, so every gateway gives the same result. `share` is from 0 to 1.
 */
function isControl(session: SessionId, share: number): boolean {
  const hash = createHash('sha256').update(`palimpsest control arm\n${session}`).digest();
  return hash.readUInt32BE(0) / 2 ** 32 < share;
}

/** A request that was made and has not ended, without its parsed body. */
interface BegunRequest {
  readonly missed: SteeredBody['missed'];
  readonly at: SteeredBody['at'];
  readonly session: SteeredSession;
  readonly sent: Buffer;
  readonly arrived: number;
  readonly facts: Omit<Parameters<typeof proofOf>[0], 'answer'>;
}

const QUOTA: Promise<SteeredBody> = Promise.resolve({ how: 'exact' });

/** Maximum number of sessions that are kept in memory. */
const MOST_SESSIONS = 64;
/** Maximum number of tool calls whose session is kept in memory. */
const MOST_CALLS = 10_000;

/**
 * Replaces the message lists in the requests of sessions by contexts in the layout `epoch`
 * (divergence E9). A sidecar records the sessions and makes the contexts. No request fails because
 * of the sidecar. If no context comes in time, the request is sent in another way that `HowSent`
 * lists.
 */
export class Steering {
  readonly #options: SteeringOptions;
  readonly #guard: LoopGuard;
  readonly #sessions = new Map<SessionId, { readonly session: SteeredSession; readonly serial: LimitFunction }>();
  readonly #reasons = new Map<string, string>();
  /** The session of each tool call, by the call's id. */
  readonly #calls = new Map<string, SessionId>();

  constructor(options: SteeringOptions) {
    this.#options = options;
    this.#guard = options.guard((session, reason) => {
      this.#reasons.set(session, reason);
    });
  }

  /** Waits for the database. Returns whether it answers within the limit. */
  warmUp(limitMs?: number): Promise<boolean> {
    return this.#guard.warmUp(limitMs);
  }

  /** Returns the session whose model made a tool call. */
  sessionOfCall(callId: string): SessionId | undefined {
    return this.#calls.get(callId);
  }

  /** Returns whether this gateway steers a session. */
  has(session: SessionId): boolean {
    return this.#sessions.has(session);
  }

  /** Runs `activate`, `deactivate`, `pin` or `unpin` in a session, as `LoopGuard.verb` does. */
  readonly verb: LoopGuard['verb'] = (call) => this.#guard.verb(call);

  /** Returns the request to send instead of the client's, or our own answer. Never rejects. */
  async outgoing(head: RequestHead, body: Buffer, arrived = Date.now()): Promise<Outgoing | Refused> {
    const begun = performance.now();
    const own = { body };
    const { wire } = head;
    if (!isSteerable(wire)) return own;
    const parsed = parsedText(body);
    if (parsed === undefined) return own;
    const facts = factsOf(head, parsed.value);
    const { session: of, thread } = facts;
    // Sub-agents are not steered. Each is a short session, which its transcript records.
    if (of === undefined || of.from === 'first-text' || of.subagent !== undefined) return own;
    const id = ownId(of.native);
    const { control } = this.#options;
    if (isControl(id, control)) return { body, steer: { arm: 'control', how: 'exact', ms: 0, bytes: body.length } };
    if (thread?.type === 'continue') return NO_THREADS;
    const { session, serial } = this.#session(id);
    const read = readerOf(wire, parsed);
    const work = (): Promise<SteeredBody> =>
      facts.side === undefined ? session.turn(read, arrived) : session.side(read);
    // A quota check contains no history.
    const made = await (facts.side === 'quota' ? QUOTA : serial(work)).catch(
      (error: unknown): SteeredBody => ({ how: 'exact', why: messageOf(error) }),
    );
    const { how, why, at, missed } = made;
    const sent = made.body?.equals(body) === false ? made.body : body;
    const ms = Math.round((performance.now() - begun) * 10) / 10;
    const steer: SteerFacts = {
      arm: 'steered',
      how,
      ms,
      bytes: body.length,
      ...(why === undefined ? {} : { why: why.slice(0, 300) }),
    };
    const answered = this.#answered({ session, missed, at, sent, arrived, facts: { ...facts, wire } });
    return { body: sent, steer, answered, ...(missed === undefined ? {} : { isMissed: true }) };
  }

  /**
   * Returns the function to call when a request has ended. Its own method, so that the function
   * does not keep the parsed body in memory.
   */
  #answered({ session, missed, at, sent, arrived, facts }: BegunRequest): NonNullable<Outgoing['answered']> {
    const requestOf = (answer: AnswerFacts): PlacedRequest | undefined => {
      const pieces = answer.status >= 400 ? undefined : bodyPieces(bodySpans(sent));
      return pieces === undefined ? undefined : { body: pieces, at: arrived, sent: proofOf({ ...facts, answer }) };
    };
    return (answer) => {
      for (const call of answer?.calls ?? []) {
        this.#noteCall(call, session.id);
        // The database looks the call's id up while the agent runs the call.
        this.#guard.expect(session.id, call);
      }
      if (missed === undefined && at === undefined) return;
      const request = answer === undefined ? undefined : requestOf(answer);
      if (missed !== undefined) session.missed.ended(missed, request);
      else if (request !== undefined) session.missed.store({ ...request, ...at });
    };
  }

  /**
   * Records the requests that earlier gateways sent without recording them. Does not wait for the
   * database.
   */
  async recover(): Promise<void> {
    for (const [id, { requests, newest }] of await leftRequests(this.#options.dataDir))
      void this.#session(id).session.recover(requests, newest);
  }

  /** Ends the sidecar. */
  close(): Promise<void> {
    for (const { session } of this.#sessions.values()) session.missed.close();
    return this.#guard.end();
  }

  #session(id: SessionId) {
    const known = this.#sessions.get(id);
    this.#sessions.delete(id);
    const { dataDir, limitMs, firstLimitMs, prepare } = this.#options;
    const host = {
      dataDir,
      guard: this.#guard,
      limitMs,
      firstLimitMs,
      prepare,
      reasonOf: (session: SessionId) => this.#reasons.get(session),
    };
    const of = known ?? { session: new SteeredSession(id, host), serial: pLimit(1) };
    this.#sessions.set(id, of);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MOST_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest);
    return of;
  }

  #noteCall(call: string, session: SessionId): void {
    this.#calls.set(call, session);
    const [oldest] = this.#calls.keys();
    if (this.#calls.size > MOST_CALLS && oldest !== undefined) this.#calls.delete(oldest);
  }
}

import {
  callSuffix,
  isInfrastructureId,
  isReservedCallId,
  type ObjectId,
  objectId,
  type SessionId,
  sessionObjectId,
  sessionOfStepCall,
  stepCallId,
} from '../../objects/ids.js';
import { withinLimit } from '../../process/within-limit.js';
import type { SessionState } from '../../session/session-state.js';
import { TIME_LIMITS } from '../time-limits.js';
import type { SessionEnvironment } from './session-environment.js';

/**
 * Maximum length of a harness's call id. A longer id is cut. A suffix for uniqueness may follow.
 */
const LONGEST = 400;

/** Returns a free form of a call id that the chat already has: `{id}~2`, `{id}~3`. */
function repeated(state: SessionState, id: string): string {
  if (!state.has(id as ObjectId)) return id;
  for (let n = 2; ; n++) if (!state.has(`${id}~${n}` as ObjectId)) return `${id}~${n}`;
}

/** The database's answer about an id, before its call is stored. */
interface ExpectedId {
  readonly taken: boolean;
  /** The transaction of the query. */
  readonly txId: number | undefined;
}

/** Number of upcoming call ids checked per query. */
const STEPS_ASKED = 256;

/** A query for the call ids of consecutive steps. `known` is its result, once there is one. */
interface AskedSteps {
  readonly from: number;
  readonly taken: Promise<ReadonlySet<string>>;
  known?: ReadonlySet<string>;
}

/** Checks ids of running and upcoming calls in the database before they are needed. */
class ExpectedIds {
  readonly #environment: SessionEnvironment;
  readonly #ids = new Map<ObjectId, Promise<ExpectedId | undefined>>();
  #steps: AskedSteps | undefined;

  constructor(environment: SessionEnvironment) {
    this.#environment = environment;
  }

  /** Checks the id of a running call, so that recording it need not wait. */
  expect(state: SessionState, given: string): void {
    const wanted = wantedOf(given);
    const id = repeated(state, wanted) as ObjectId;
    if (isReservedCallId(wanted) || this.#ids.has(id)) return;
    const asked = lookUp(this.#environment, id, state.id).catch(() => undefined);
    this.#ids.set(id, asked);
  }

  /**
   * Returns whether the id of the session's next call is taken. While the session exists, no other
   * session takes such ids, so one query covers many steps.
   */
  isStepTaken({ id: session, seq }: SessionState, id: ObjectId, losses: number): boolean | Promise<boolean> {
    const next = seq + 1;
    if (this.#steps === undefined || next < this.#steps.from || next >= this.#steps.from + STEPS_ASKED) {
      const asked = Array.from({ length: STEPS_ASKED }, (_, i) => stepCallId(session, next + i, losses));
      const taken = existing(this.#environment, asked).then(({ found }) => found);
      const steps: AskedSteps = { from: next, taken };
      this.#steps = steps;
      taken.then(
        (known) => {
          steps.known = known;
        },
        () => {
          if (this.#steps === steps) this.#steps = undefined;
        },
      );
    }
    const { known, taken } = this.#steps;
    return known?.has(id) ?? taken.then((found) => found.has(id));
  }

  /** Returns the earlier answer about an id. Undefined if another client may have written since. */
  async take(id: ObjectId, latest: () => Promise<number | undefined>): Promise<boolean | undefined> {
    const asked = this.#ids.get(id);
    if (asked === undefined) return undefined;
    this.#ids.delete(id);
    const [found, now] = await Promise.all([asked, latest()]);
    if (found?.txId === undefined || now === undefined) return undefined;
    return this.#environment.store.writes.own.coverSent(found.txId, now) ? found.taken : undefined;
  }
}

/**
 * Returns which of the ids exist as documents of any kind, and the transaction of the query. This
 * client's own calls need no query.
 */
async function existing(
  { store }: SessionEnvironment,
  ids: readonly ObjectId[],
): Promise<{ readonly found: ReadonlySet<string>; readonly txId: number | undefined }> {
  const txId = await store.latestTransaction();
  return { found: new Set(txId === undefined ? [] : await store.newestAt(txId).existing(ids)), txId };
}

/**
 * Returns whether an id is taken: by a document of any kind, or by another session that exists and
 * gives its calls such ids.
 */
async function lookUp(environment: SessionEnvironment, id: ObjectId, chat: SessionId): Promise<ExpectedId> {
  const owner = sessionOfStepCall(id);
  const { found, txId } = await existing(
    environment,
    owner === undefined || owner === chat ? [id] : [id, sessionObjectId(owner)],
  );
  return { taken: found.size > 0, txId };
}

function wantedOf(given: string): string {
  return given.slice(0, LONGEST).toWellFormed();
}

/** The inputs for the ids of a session's calls. */
export interface CallIdRules {
  /** Whether the session's id is random. Then no other session has ids derived from it. */
  readonly hasRandomId: boolean;
  /** Number of damaged journals that may have held calls of the chat. */
  readonly losses: number;
  /** Returns the last transaction of the database. */
  readonly latest: () => Promise<number | undefined>;
}

/** The id that a harness gave a call, with the earlier queries about ids. */
interface GivenId extends CallIdRules {
  readonly given: string | undefined;
  readonly expected: ExpectedIds;
}

/**
 * Returns how long a call may wait for the look-up of its id. If the database has answered before,
 * it is slow and not down, and a slow database must not change the id. A session with a random id
 * may begin before the node is ready.
 */
function lookUpLimit({ metadata, outbox }: SessionEnvironment, session: SessionId, hasRandomId: boolean): number {
  const hasAnswered = !hasRandomId || metadata.knownUpto(session) !== undefined;
  return hasAnswered && outbox.status.outage === undefined ? TIME_LIMITS.callIdOfSlow : TIME_LIMITS.callId;
}

/**
 * Returns whether another chat has an id. Returns true if the database is down, because the id then
 * gets a suffix, which is never wrong.
 */
async function isTaken(
  environment: SessionEnvironment,
  id: ObjectId,
  { state, given, losses, hasRandomId, expected, latest }: GivenId & { readonly state: SessionState },
): Promise<boolean> {
  const { metadata, versions, outbox } = environment;
  // Another session of this client has the id.
  if (versions.pending(id) !== undefined || metadata.get(id) !== undefined) return true;
  const isOfStep = (given ?? '') === '' && id === stepCallId(state.id, state.seq + 1, losses);
  const asked = isOfStep
    ? expected.isStepTaken(state, id, losses)
    : expected
        .take(id, latest)
        .catch(() => undefined)
        .then(async (known) => known ?? (await lookUp(environment, id, state.id)).taken);
  if (typeof asked === 'boolean' || !outbox.isDurable) return asked;
  return withinLimit(
    asked.catch(() => true),
    lookUpLimit(environment, state.id, hasRandomId),
    () => true,
  );
}

/**
 * Returns an id that only this session uses. A suffix is added if it looks like an infrastructure
 * object's id.
 */
function ownId(state: SessionState, id: string): ObjectId {
  return objectId(repeated(state, isInfrastructureId(id) ? `${id}~1` : id));
}

/**
 * Returns the id of a tool call object (decision B2). It is the harness's id if that is free or
 * belongs to this chat. The session's id is appended if another chat has the id, or if the id could
 * name another kind of object. Without a harness id, it is `{session}:{step}`, or
 * `{session}:{losses}.{step}` if a damaged journal may have held that id. Calls that a fork shares
 * with its parent belong to this chat; later calls of the parent do not.
 */
async function callIdFor(environment: SessionEnvironment, state: SessionState, call: GivenId): Promise<ObjectId> {
  const { given, hasRandomId, losses } = call;
  const isGiven = given !== undefined && given !== '';
  const wanted = isGiven ? wantedOf(given) : stepCallId(state.id, state.seq + 1, losses);
  const suffix = callSuffix(state.id);
  // No other chat has an id that ends with this session's id.
  if (wanted.endsWith(suffix)) return ownId(state, wanted);
  if (!isReservedCallId(wanted)) {
    const id = repeated(state, wanted) as ObjectId;
    if ((!isGiven && hasRandomId) || !(await isTaken(environment, id, { ...call, state }))) return objectId(id);
  }
  return ownId(state, `${wanted}${suffix}`);
}

/** The ids of a session's calls. */
export class CallIds {
  readonly #environment: SessionEnvironment;
  readonly #rules: CallIdRules;
  readonly #expected: ExpectedIds;

  constructor(environment: SessionEnvironment, rules: CallIdRules) {
    this.#environment = environment;
    this.#rules = rules;
    this.#expected = new ExpectedIds(environment);
  }

  /**
   * Returns the id of the call of the session's next step. It is the given id if that is free
   * (decision B2).
   */
  next(state: SessionState, given: string | undefined): Promise<ObjectId> {
    return callIdFor(this.#environment, state, { ...this.#rules, given, expected: this.#expected });
  }

  /** Checks the id of a running call, so that recording it need not wait. */
  expect(state: SessionState, given: string): void {
    this.#expected.expect(state, given);
  }
}

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

/** Longest id of a harness that is kept as it is; the marks that make it unique follow it. */
const LONGEST = 400;

/** An id for a call that comes again in the same chat: `{id}~2`, `{id}~3`. */
function repeated(state: SessionState, id: string): string {
  if (!state.has(id as ObjectId)) return id;
  for (let n = 2; ; n++) if (!state.has(`${id}~${n}` as ObjectId)) return `${id}~${n}`;
}

/** What the database said of an id before its call was there. */
interface ExpectedId {
  readonly taken: boolean;
  /** The transaction that it was asked at. */
  readonly txId: number | undefined;
}

/** For how many steps the database is asked at once whether somebody has the ids of their calls. */
const STEPS_ASKED = 256;

/** The ids of so many steps from one on, and which of them somebody has, once that is known. */
interface AskedSteps {
  readonly from: number;
  readonly taken: Promise<ReadonlySet<string>>;
  known?: ReadonlySet<string>;
}

/** Ids of calls that are under way or still to come: the database is asked for them before they are needed. */
class ExpectedIds {
  readonly #environment: SessionEnvironment;
  readonly #ids = new Map<ObjectId, Promise<ExpectedId | undefined>>();
  #steps: AskedSteps | undefined;

  constructor(environment: SessionEnvironment) {
    this.#environment = environment;
  }

  /** Asks for an id whose call has begun, so that nobody waits for the answer when it ends. */
  expect(state: SessionState, given: string): void {
    const wanted = wantedOf(given);
    const id = repeated(state, wanted) as ObjectId;
    if (isReservedCallId(wanted) || this.#ids.has(id)) return;
    const asked = lookUp(this.#environment, id, state.id).catch(() => undefined);
    this.#ids.set(id, asked);
  }

  /**
   * Whether somebody has the id that a session gives the call of its next step. Once the session is there nobody can take it any more, so that one question
   * covers many steps.
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

  /** What was said of an id, if it still holds: nobody else has written since, as far as the database has got. */
  async take(id: ObjectId, latest: () => Promise<number | undefined>): Promise<boolean | undefined> {
    const asked = this.#ids.get(id);
    if (asked === undefined) return undefined;
    this.#ids.delete(id);
    const [found, now] = await Promise.all([asked, latest()]);
    if (found?.txId === undefined || now === undefined) return undefined;
    return this.#environment.store.writes.own.coverSent(found.txId, now) ? found.taken : undefined;
  }
}

/** Under which of some ids a document of any kind stands, and the transaction that it was asked at. This client's own calls are known without asking. */
async function existing(
  { store }: SessionEnvironment,
  ids: readonly ObjectId[],
): Promise<{ readonly found: ReadonlySet<string>; readonly txId: number | undefined }> {
  const txId = await store.latestTransaction();
  return { found: new Set(txId === undefined ? [] : await store.newestAt(txId).existing(ids)), txId };
}

/** Whether a document of any kind stands under an id, or another session is there that gives its calls such ids. */
async function lookUp(environment: SessionEnvironment, id: ObjectId, chat: SessionId): Promise<ExpectedId> {
  const owner = sessionOfStepCall(id);
  const { found, txId } = await existing(environment, owner === undefined || owner === chat ? [id] : [id, sessionObjectId(owner)]);
  return { taken: found.size > 0, txId };
}

function wantedOf(given: string): string {
  return given.slice(0, LONGEST).toWellFormed();
}

/** What the ids of a session's calls depend on. */
export interface CallIdRules {
  /** Whether the session has a name that nobody could know before it began: then what is made of it is free. */
  readonly isSecret: boolean;
  /** How many damaged journals may have held calls of the chat. */
  readonly losses: number;
  /** The last transaction of the database. */
  readonly latest: () => Promise<number | undefined>;
}

/** The id that a harness gave a call, and what was asked about it before. */
interface GivenId extends CallIdRules {
  readonly given: string | undefined;
  readonly expected: ExpectedIds;
}

/**
 * How long a call may wait for the database to say whether another chat has its id. A session with a name was opened with the database; a new one may begin while the node still starts. Only a
 * database that cannot be asked changes an id, never one that is slow.
 */
function lookUpLimit({ metadata, outbox }: SessionEnvironment, session: SessionId, isSecret: boolean): number {
  const hasAnswered = !isSecret || metadata.knownUpto(session) !== undefined;
  return hasAnswered && outbox.status.outage === undefined ? TIME_LIMITS.callIdOfSlow : TIME_LIMITS.callId;
}

/** Whether another chat has an id; assumed when the database cannot be asked: an id that is made unique is never wrong. */
async function isTaken(
  environment: SessionEnvironment,
  id: ObjectId,
  { state, given, losses, isSecret, expected, latest }: GivenId & { readonly state: SessionState },
): Promise<boolean> {
  const { metadata, versions, outbox } = environment;
  // Another session of this client has it.
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
    lookUpLimit(environment, state.id, isSecret),
    () => true,
  );
}

/** An id that only this session gives its calls; a mark behind it keeps it from looking like part of a session. */
function ownId(state: SessionState, id: string): ObjectId {
  return objectId(repeated(state, isInfrastructureId(id) ? `${id}~1` : id));
}

/**
 * The id of a tool call object (decision B2): the harness's own when it is free or this chat's, with the session's id behind it when another chat has
 * it or it could name something else than a call; `{session}:{step}` where the harness gives none, and `{session}:{losses}.{step}` where a damaged journal may have
 * held a call that had that one. What a fork shares with its parent is this chat's; what the parent called later is not.
 */
async function callIdFor(environment: SessionEnvironment, state: SessionState, call: GivenId): Promise<ObjectId> {
  const { given, isSecret, losses } = call;
  const isGiven = given !== undefined && given !== '';
  const wanted = isGiven ? wantedOf(given) : stepCallId(state.id, state.seq + 1, losses);
  const suffix = callSuffix(state.id);
  // An id with this session's id behind it is no other chat's.
  if (wanted.endsWith(suffix)) return ownId(state, wanted);
  if (!isReservedCallId(wanted)) {
    const id = repeated(state, wanted) as ObjectId;
    if ((!isGiven && isSecret) || !(await isTaken(environment, id, { ...call, state }))) return objectId(id);
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

  /** The id of the call of the session's next step, the given one where that is free (decision B2). */
  next(state: SessionState, given: string | undefined): Promise<ObjectId> {
    return callIdFor(this.#environment, state, { ...this.#rules, given, expected: this.#expected });
  }

  /** Asks for an id whose call has begun, so that nobody waits for the answer when it ends. */
  expect(state: SessionState, given: string): void {
    this.#expected.expect(state, given);
  }
}

import { HistoryError } from '../../history/rebuild/history-error.js';
import { formatMoment, NOW, parseMoment, type When } from '../../history/rebuild/moment.js';
import { Timeline } from '../../history/rebuild/timeline.js';
import { type SessionId, sessionObjectId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import type { ForkPoint } from '../../store/head.js';
import type { ObjectStore } from '../../store/object-store.js';
import { forkSession } from '../delivery/session-heads.js';

/** The parts of the environment that a fork needs. */
export interface ForkEnvironment {
  readonly store: ObjectStore;
  /** Describes the process that has a session open. Undefined if there is none. */
  readonly holder: (session: SessionId) => Promise<string | undefined>;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/**
 * Where a fork begins: after a step of its parent, or at a reviewer's moment such as `turn:7`.
 * Default: after the last step.
 */
export type ForkPlace = number | string | When;

/** A new fork. */
export interface MadeFork {
  readonly id: SessionId;
  /** The parent session, and the last step that both share. */
  readonly parent: ForkPoint;
}

/** The requested step. */
interface AskedStep extends Pick<ForkEnvironment, 'holder'> {
  readonly when: When;
}

/**
 * Returns the last step of a session at a moment, or 0 if it had none yet. A running turn has no
 * end, so a step of it must be named.
 * @throws {HistoryError} `beyond-end`, `not-yet` – the session did not exist then
 * @throws {SessionError} `turn-running`
 */
export async function stepAt(timeline: Timeline, session: SessionId, { when, holder }: AskedStep): Promise<number> {
  const { place, snapshot } = await timeline.find(when, session);
  const { moment = NOW } = when;
  if (place === undefined) {
    const id = sessionObjectId(session);
    if (!(await snapshot.heads([id])).has(id))
      throw new HistoryError(
        'not-yet',
        `session ${session} did not exist at ${formatMoment(moment)}; palimpsest log ${session} shows its turns`,
      );
    return (await snapshot.steps(session)).at(-1)?.seq ?? 0;
  }
  const isWholeTurn = moment.kind === 'turn' && moment.step === undefined;
  const running = isWholeTurn && place.isEnd ? await holder(session) : undefined;
  if (running !== undefined) {
    const before = place.turn > 1 ? `, or a turn before it (turn:${place.turn - 1})` : '';
    throw new SessionError(
      'turn-running',
      `turn ${place.turn} of session ${session} may not be complete: the session is open in ${running}; ` +
        `name a step of it (step:${place.seq})${before}`,
    );
  }
  return place.seq;
}

async function sharedSteps(
  { store, holder }: ForkEnvironment,
  parent: SessionId,
  at: ForkPlace | undefined,
): Promise<number | undefined> {
  if (at === undefined || typeof at === 'number') return at;
  const id = sessionObjectId(parent);
  // Let the caller report a missing session before an error of the moment.
  if (!(await (await store.latest()).heads([id])).has(id)) return undefined;
  return stepAt(await Timeline.open(store), parent, {
    holder,
    when: typeof at === 'string' ? { moment: parseMoment(at) } : at,
  });
}

/**
 * Forks a session at a step or a moment (decision F2). The new session has the parent's chat, sets
 * and prompt of that point. It is not opened.
 * @throws {HistoryError} `malformed-moment`, `beyond-end`, `not-yet`.
 * @throws {SessionError} `unknown-session`, `turn-running`.
 * @throws {SessionError} `sequence-gap` – the parent lacks the step.
 * @throws {SessionError} `session-exists` – the new id is taken.
 * @throws {XtdbError} the database is down.
 */
export async function forkAt(
  environment: ForkEnvironment,
  parent: SessionId,
  { id, at }: { readonly id: SessionId; readonly at?: ForkPlace | undefined },
): Promise<MadeFork> {
  const seq = await sharedSteps(environment, parent, at);
  return { id, parent: await forkSession(environment, parent, { id, at: seq }) };
}

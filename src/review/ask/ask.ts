import { askedSession } from '../../history/rebuild/asked-session.js';
import { ownSession, requireSession } from '../../history/rebuild/find-session.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import {
  askedMoment,
  type Moment,
  type MomentText,
  NOW,
  parseRange,
  parseReference,
} from '../../history/rebuild/moment.js';
import { type PastContext, PastContexts } from '../../history/rebuild/past-context.js';
import type { Point, Timeline } from '../../history/rebuild/timeline.js';
import { type ObjectId, type SessionId, sessionObjectId } from '../../objects/ids.js';
import { diffObject, diffSession, type ObjectDiff, pointBefore, type SessionDiff } from './diff.js';
import { findSubject, requireObject } from './find-object.js';
import type { LoggedTurn } from './logged-turn.js';
import { type LoggedVersion, objectLog } from './object-log.js';
import { type ObjectView, viewAt } from './object-view.js';
import { type QueryAnswer, type QueryLimits, runQuery } from './run-query.js';
import { type Sightings, seenBy } from './seen-by.js';
import { latestTurns, sessionLog } from './session-log.js';

/** A reviewer's question, not yet parsed. Names may end in `@` and a moment. */
export interface Question extends MomentText {
  readonly session?: string | undefined;
  readonly limit?: number | undefined;
}

interface ObjectQuestion extends Question {
  readonly object: string;
}

/** Number of turns shown if no session is named. */
const LATEST = 20;

async function sessionIn(timeline: Timeline, name: string | undefined): Promise<SessionId | undefined> {
  return name === undefined ? undefined : requireSession(timeline.present, name);
}

/** Returns the named object. The name of a session stands for its session object. */
async function objectNamed(timeline: Timeline, name: string, session: SessionId | undefined): Promise<ObjectId> {
  const subject = await findSubject(timeline.present, name, { session, paths: timeline.paths });
  return subject.kind === 'object' ? subject.id : sessionObjectId(subject.session);
}

/**
 * Returns the turns of a session, or the latest turns of all sessions, newest first. With an
 * object, it returns only the turns that touched the object.
 *
 * @example
 * ```ts
 * const { turns } = await askTurns(timeline, { session: 'fix-cart@turn:7' });
 * ```
 */
export async function askTurns(
  timeline: Timeline,
  { session: reference, object, limit, ...text }: Question & { readonly object?: string | undefined },
): Promise<{ readonly point: Point; readonly turns: readonly LoggedTurn[] }> {
  const { name, moment } = parseReference(reference ?? '');
  const session = await sessionIn(timeline, reference === undefined ? undefined : name);
  const id =
    object === undefined
      ? undefined
      : await requireObject(timeline.present, object, { session, paths: timeline.paths });
  const point = await timeline.find(askedMoment(text, moment), session);
  const latest = point.basis.validTime.getTime();
  const wanted = point.place === undefined ? { until: latest } : { upto: point.place.seq };
  // Later transactions are excluded, regardless of their valid times.
  const { txId } = point.basis;
  const known =
    txId === undefined || txId === timeline.present.basis.txId ? timeline : (timeline.upTo(txId) ?? timeline);
  const turns =
    session === undefined
      ? await latestTurns(known, { limit: limit ?? LATEST, until: latest, at: point.snapshot })
      : await sessionLog(known, session, { object: id, limit, ...wanted });
  return { point, turns };
}

/**
 * Returns the named object and the point of the moment. A turn number refers to the named session.
 * Without one, it refers to the object's own session.
 */
async function objectAt(timeline: Timeline, { session: of, object, ...text }: ObjectQuestion) {
  const { name, moment } = parseReference(object);
  const session = await sessionIn(timeline, of);
  const id = await objectNamed(timeline, name, session);
  return {
    id,
    point: await timeline.find(askedMoment(text, moment), session ?? (await ownSession(timeline.present, id))),
  };
}

/**
 * Returns the versions of an object up to a moment, newest first.
 *
 * @example
 * ```ts
 * const { versions } = await askVersions(timeline, { object: 'src/cart.ts', limit: 5 });
 * ```
 */
export async function askVersions(
  timeline: Timeline,
  question: ObjectQuestion,
): Promise<{ readonly id: ObjectId; readonly point: Point; readonly versions: readonly LoggedVersion[] }> {
  const { id, point } = await objectAt(timeline, question);
  return { id, point, versions: await objectLog(point.snapshot, id, question.limit) };
}

/**
 * Returns an object at a moment. A turn number refers to the named session. Without one, it refers
 * to the object's own session.
 *
 * @example
 * ```ts
 * const view = await askObject(timeline, { object: 'src/cart.ts@2026-11-20T09:00:00Z' });
 * ```
 */
export async function askObject(timeline: Timeline, question: ObjectQuestion): Promise<ObjectView> {
  const { id, point } = await objectAt(timeline, question);
  return viewAt(timeline, id, point);
}

/** The changes of an object or a session. */
export type AskedDiff =
  | { readonly kind: 'object'; readonly diff: ObjectDiff }
  | { readonly kind: 'session'; readonly diff: SessionDiff };

/**
 * Returns the moment that a session is compared with by default: the end of its second-to-last
 * turn. For a session with one turn, it is the moment before the first step.
 */
async function momentBefore(timeline: Timeline, session: SessionId): Promise<Moment> {
  const previous = (await timeline.turns(session)).at(-2);
  if (previous !== undefined) return { kind: 'turn', turn: previous.turn };
  const { basis } = await timeline.find({ moment: { kind: 'step', seq: 1 } }, session);
  return { kind: 'tx', txId: Math.max(0, (basis.txId ?? 0) - 1) };
}

async function diffOfSession(asked: Timeline, session: SessionId, range: string | undefined): Promise<AskedDiff> {
  const timeline = await asked.of(session);
  const { from, to } =
    range === undefined ? { from: await momentBefore(timeline, session), to: NOW } : parseRange(range);
  if (from === undefined)
    throw new HistoryError('malformed-moment', 'a session needs two moments: write A..B, such as 3..7');
  const [before, after] = await Promise.all([
    timeline.find({ moment: from }, session),
    timeline.find({ moment: to }, session),
  ]);
  return { kind: 'session', diff: await diffSession(timeline, session, { from: before, to: after }) };
}

/**
 * Returns the changes of an object or a session between two moments. By default, an object is
 * compared with its previous version, and a session with the end of its previous turn.
 *
 * @example
 * ```ts
 * const changes = await askDiff(timeline, { name: 'fix-cart', range: '3..7' });
 * ```
 */
export async function askDiff(
  timeline: Timeline,
  {
    name,
    session: of,
    range,
    context,
  }: {
    readonly name: string;
    readonly session?: string | undefined;
    readonly range?: string | undefined;
    readonly context?: number | undefined;
  },
): Promise<AskedDiff> {
  const session = await sessionIn(timeline, of);
  const subject = await findSubject(timeline.present, name, { session, paths: timeline.paths });
  if (subject.kind === 'session') return diffOfSession(timeline, subject.session, range);
  const { id } = subject;
  const own = await ownSession(timeline.present, id);
  if (own !== undefined && id === sessionObjectId(own)) return diffOfSession(timeline, own, range);
  const { from, to } = parseRange(range ?? '..now');
  const whose = session ?? own;
  const line = whose === undefined ? timeline : await timeline.of(whose);
  const after = await line.find({ moment: to }, whose);
  const before = from === undefined ? await pointBefore(line, id, after) : await line.find({ moment: from }, whose);
  return { kind: 'object', diff: await diffObject(line, id, { from: before, to: after, context }) };
}

/**
 * Returns the sessions that saw an object, and those that cannot be read.
 *
 * @example
 * ```ts
 * const { sightings } = await askWho(timeline, { object: 'src/cart.ts' });
 * ```
 */
export async function askWho(
  timeline: Timeline,
  { object, session }: { readonly object: string; readonly session?: string | undefined },
): Promise<Sightings & { readonly id: ObjectId }> {
  const id = await objectNamed(timeline, object, await sessionIn(timeline, session));
  if (id.startsWith('session:'))
    throw new HistoryError('wrong-kind', `${id} is a session: palimpsest who takes a file or a tool call`);
  return { id, ...(await seenBy(timeline, id)) };
}

/**
 * Returns the rows of a query at a moment.
 *
 * @example
 * ```ts
 * const query = '[:find ?e :where [?e :tool "bash"]]';
 * const { answer } = await askQuery(timeline, query, { limit: 20 });
 * ```
 */
export async function askQuery(
  timeline: Timeline,
  query: string,
  { session: of, limit, timeoutMs, args, storage, ...text }: Question & QueryLimits,
): Promise<{ readonly point: Point; readonly answer: QueryAnswer }> {
  const point = await timeline.find(askedMoment(text), await sessionIn(timeline, of));
  return { point, answer: await runQuery(point.snapshot, query, { limit, timeoutMs, args, storage }) };
}

/**
 * A question about a context. With `assemble`, the answer is the session's state at the moment,
 * rendered now.
 */
export interface ContextQuestion extends MomentText {
  readonly assemble?: boolean | undefined;
}

/**
 * Returns the context that a model was sent at a moment.
 *
 * @throws {HistoryError} `not-seen` if no record shows that request and `assemble` is not set
 *
 * @example
 * ```ts
 * const { text } = await askContext(timeline, 'fix-cart@turn:7', {});
 * ```
 */
export async function askContext(
  timeline: Timeline,
  reference: string,
  { assemble, ...text }: ContextQuestion,
): Promise<PastContext> {
  const { session, when } = await askedSession(timeline, reference, text);
  const own = await timeline.of(session);
  const contexts = new PastContexts(own, own.rebuilder);
  return assemble === true ? contexts.assembled(session, when) : contexts.at(session, when);
}

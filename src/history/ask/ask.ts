import { type ObjectId, type SessionId, sessionObjectId } from '../../objects/ids.js';
import { requireSession } from '../rebuild/find-session.js';
import { HistoryError } from '../rebuild/history-error.js';
import { type Moment, NOW } from '../rebuild/moment.js';
import { type PastContext, PastContexts } from '../rebuild/past-context.js';
import type { Point, Timeline } from '../rebuild/timeline.js';
import { askedSession } from './asked-session.js';
import { diffObject, diffSession, type ObjectDiff, pointBefore, type SessionDiff } from './diff.js';
import { findSubject, requireObject } from './find-object.js';
import type { LoggedTurn } from './logged-turn.js';
import { type LoggedVersion, objectLog } from './object-log.js';
import { type ObjectView, ownSession, viewAt } from './object-view.js';
import { askedMoment, type MomentText, parseRange, parseReference } from './reference.js';
import { type QueryAnswer, type QueryLimits, runQuery } from './run-query.js';
import { type Sighting, seenBy } from './seen-by.js';
import { latestTurns, sessionLog } from './session-log.js';

/** A question as its reader wrote it: names may carry a moment behind an `@`. */
export interface Question extends MomentText {
  readonly session?: string | undefined;
  readonly limit?: number | undefined;
}

interface ObjectQuestion extends Question {
  readonly object: string;
}

/** Turns that are shown where no session is named. */
const LATEST = 20;

async function sessionIn(timeline: Timeline, name: string | undefined): Promise<SessionId | undefined> {
  return name === undefined ? undefined : requireSession(timeline.present, name);
}

/** The object that is named; a session's name stands for its session object. */
async function objectNamed(timeline: Timeline, name: string, session: SessionId | undefined): Promise<ObjectId> {
  const subject = await findSubject(timeline.present, name, { session, paths: timeline.paths });
  return subject.kind === 'object' ? subject.id : sessionObjectId(subject.session);
}

/** The turns of a session, or the latest of all, newest first; with an object only those that touched it. */
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
  // What the database learned later was not there, however it is dated.
  const { txId } = point.basis;
  const known =
    txId === undefined || txId === timeline.present.basis.txId ? timeline : (timeline.upTo(txId) ?? timeline);
  const turns =
    session === undefined
      ? await latestTurns(known, { limit: limit ?? LATEST, until: latest, at: point.snapshot })
      : await sessionLog(known, session, { object: id, limit, ...wanted });
  return { point, turns };
}

/** The object that is named, and the moment that is asked for: a turn is one of the session that is named, else of the one that it belongs to. */
async function objectAt(timeline: Timeline, { session: of, object, ...text }: ObjectQuestion) {
  const { name, moment } = parseReference(object);
  const session = await sessionIn(timeline, of);
  const id = await objectNamed(timeline, name, session);
  return {
    id,
    point: await timeline.find(askedMoment(text, moment), session ?? (await ownSession(timeline.present, id))),
  };
}

/** The versions of an object up to a moment, newest first. */
export async function askVersions(
  timeline: Timeline,
  question: ObjectQuestion,
): Promise<{ readonly id: ObjectId; readonly point: Point; readonly versions: readonly LoggedVersion[] }> {
  const { id, point } = await objectAt(timeline, question);
  return { id, point, versions: await objectLog(point.snapshot, id, question.limit) };
}

/** An object at a moment; a turn is one of the session that is named, else of the session that the object belongs to by itself. */
export async function askObject(timeline: Timeline, question: ObjectQuestion): Promise<ObjectView> {
  const { id, point } = await objectAt(timeline, question);
  return viewAt(timeline, id, point);
}

/** How an object or a session changed. */
export type AskedDiff =
  | { readonly kind: 'object'; readonly diff: ObjectDiff }
  | { readonly kind: 'session'; readonly diff: SessionDiff };

/** The moment that a session is compared with where none is named: the end of the turn before its last one, and before its first step where it has one turn only. */
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
    throw new HistoryError('malformed-moment', 'a session has no moment before: write A..B, such as 3..7');
  const [before, after] = await Promise.all([
    timeline.find({ moment: from }, session),
    timeline.find({ moment: to }, session),
  ]);
  return { kind: 'session', diff: await diffSession(timeline, session, { from: before, to: after }) };
}

/** How an object changed from one moment to another, by default since the version before; or a session, by default since the turn before, or since its beginning. */
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

/** Who saw an object. */
export async function askWho(
  timeline: Timeline,
  { object, session }: { readonly object: string; readonly session?: string | undefined },
): Promise<{ readonly id: ObjectId; readonly sightings: readonly Sighting[] }> {
  const id = await objectNamed(timeline, object, await sessionIn(timeline, session));
  if (id.startsWith('session:'))
    throw new HistoryError('wrong-kind', `${id} is a session: who asks about a file or a tool call`);
  return { id, sightings: await seenBy(timeline, id) };
}

/** The rows of a query at a moment. */
export async function askQuery(
  timeline: Timeline,
  query: string,
  { session: of, limit, timeoutMs, args, storage, ...text }: Question & QueryLimits,
): Promise<{ readonly point: Point; readonly answer: QueryAnswer }> {
  const point = await timeline.find(askedMoment(text), await sessionIn(timeline, of));
  return { point, answer: await runQuery(point.snapshot, query, { limit, timeoutMs, args, storage }) };
}

/** A question about a context; with `assemble` the session as it stood is rendered now, whatever its model was sent. */
export interface ContextQuestion extends MomentText {
  readonly assemble?: boolean | undefined;
}

/** The context that a model was sent at a moment. @throws {HistoryError} `not-seen` where there is no record of it, without `assemble` */
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

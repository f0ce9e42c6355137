import { requireObject } from '../history/find-object.js';
import { requireSession } from '../history/find-session.js';
import { findSubject } from '../history/find-subject.js';
import { HistoryError } from '../history/history-error.js';
import { diffObject, pointBefore } from '../history/object-diff.js';
import { objectLog } from '../history/object-log.js';
import { type ObjectView, ownSession, requireText, viewObject } from '../history/object-view.js';
import { parseRange, parseReference } from '../history/reference.js';
import { runQuery } from '../history/run-query.js';
import { seenBy } from '../history/seen-by.js';
import { diffSession } from '../history/session-diff.js';
import { type LoggedTurn, latestTurns, sessionLog } from '../history/session-log.js';
import { logAnswer, objectDiffAnswer, queryAnswer, sessionDiffAnswer, showAnswer, whoAnswer } from '../http/review-answers.js';
import { type ObjectId, type SessionId, sessionObjectId } from '../objects/ids.js';
import { type Answer, answerReview, namesFor } from './answer-review.js';
import { escapeText } from './escape-text.js';
import { type Review, whenOf } from './open-review.js';
import { basisText, pointText } from './print-basis.js';
import { objectDiffLines, sessionDiffLines } from './print-diff.js';
import { turnLines, versionLines } from './print-log.js';
import { objectLines } from './print-object.js';
import { rowLines } from './print-rows.js';
import { sightingLines } from './print-who.js';
import type { ReviewFlags } from './review-flags.js';

/** Turns that are shown where no session is named. */
const LATEST = 20;

async function sessionFlag({ timeline }: Review, flags: ReviewFlags): Promise<SessionId | undefined> {
  return flags.session === undefined ? undefined : requireSession(timeline.present, flags.session);
}

/** The object that is named; a session's name stands for its session object. */
async function objectNamed({ timeline, display }: Review, name: string, session: SessionId | undefined): Promise<ObjectId> {
  const subject = await findSubject(timeline.present, name, { session, display });
  return subject.kind === 'object' ? subject.id : sessionObjectId(subject.session);
}

async function viewOf(review: Review, reference: string, flags: ReviewFlags): Promise<ObjectView> {
  const { name, moment } = parseReference(reference);
  const session = await sessionFlag(review, flags);
  return viewObject(review.timeline, await objectNamed(review, name, session), whenOf(flags, moment), session);
}

const idsOf = (turns: readonly LoggedTurn[]): readonly ObjectId[] => turns.flatMap(({ changes }) => Object.values(changes).flat());

async function logTurns(review: Review, name: string | undefined, flags: ReviewFlags): Promise<Answer> {
  const { timeline, display } = review;
  const { name: sessionName, moment } = parseReference(name ?? '');
  const session = name === undefined ? undefined : await requireSession(timeline.present, sessionName);
  const object = flags.object === undefined ? undefined : await requireObject(timeline.present, flags.object, { session, display });
  const point = await timeline.find(whenOf(flags, moment), session);
  const bounds = { object, limit: flags.limit, upto: point.place?.seq };
  const turns = session === undefined ? await latestTurns(timeline, flags.limit ?? LATEST) : await sessionLog(timeline, session, bounds);
  const isThen = ({ from }: LoggedTurn): boolean => point.place !== undefined || from.getTime() <= point.basis.validTime.getTime();
  const shown = turns.filter(isThen);
  const nameOf = await namesFor(review, idsOf(shown));
  return {
    lines: (colours) => (shown.length === 0 ? ['no turns'] : shown.flatMap((turn) => turnLines(turn, nameOf, colours))),
    holds: pointText(point),
    json: logAnswer(point.basis, { turns: shown }),
  };
}

async function logVersions(review: Review, name: string, flags: ReviewFlags): Promise<Answer> {
  const { timeline } = review;
  const { name: objectName, moment } = parseReference(name);
  const session = await sessionFlag(review, flags);
  const id = await objectNamed(review, objectName, session);
  const point = await timeline.find(whenOf(flags, moment), session ?? (await ownSession(timeline.present, id)));
  const versions = await objectLog(point.snapshot, id, flags.limit);
  return {
    lines: (colours) => (versions.length === 0 ? ['no versions then'] : versions.flatMap((version) => versionLines(version, colours))),
    holds: pointText(point),
    json: logAnswer(point.basis, { versions }),
  };
}

/** `log [session] [--object ID]` */
export async function logAction(session: string | undefined, flags: ReviewFlags): Promise<void> {
  const { object } = flags;
  await answerReview(flags, (review) =>
    session === undefined && object !== undefined ? logVersions(review, object, flags) : logTurns(review, session, flags),
  );
}

/** `show <object>[@when]` */
export async function showAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async (review) => {
    const view = await viewOf(review, reference, flags);
    const text = await view.text();
    const { source } = view.version;
    const display = source === null ? undefined : review.display(source);
    return {
      lines: (colours) => objectLines(view, display, text, flags.content ?? true, colours),
      holds: pointText(view.point),
      json: showAnswer(view, flags.content === false ? undefined : text, review.display),
    };
  });
}

/** `cat <object>[@when]`: to a pipe or file the exact bytes, to a terminal with control characters as escapes. */
export async function catAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async (review) => {
    const view = await viewOf(review, reference, flags);
    const { text, whole } = await requireText(view);
    if (!whole) process.stderr.write('# only the head and the tail of this text were kept\n');
    return { lines: () => [escapeText(text)], exact: text, json: showAnswer(view, { text, whole }, review.display) };
  });
}

async function diffOfSession(review: Review, session: SessionId, range: string | undefined): Promise<Answer> {
  const { timeline } = review;
  const { from, to } = parseRange(range ?? `turn:${Math.max(1, ((await timeline.turns(session)).at(-1)?.turn ?? 1) - 1)}..`);
  if (from === undefined) throw new HistoryError('malformed-moment', 'a session has no moment before: write A..B, such as 3..7');
  const [before, after] = await Promise.all([timeline.find({ moment: from }, session), timeline.find({ moment: to }, session)]);
  const diff = await diffSession(timeline, session, before, after);
  const { index, active, pinned } = diff.sets;
  const nameOf = await namesFor(review, [
    ...[index, active, pinned].flatMap(({ added, removed }) => [...added, ...removed]),
    ...diff.active.map(({ id }) => id),
  ]);
  return { lines: (colours) => sessionDiffLines(diff, nameOf, colours), json: sessionDiffAnswer(diff) };
}

async function diffOfObject(
  review: Review,
  id: ObjectId,
  range: string | undefined,
  session: SessionId | undefined,
  flags: ReviewFlags,
): Promise<Answer> {
  const { timeline } = review;
  const { from, to } = parseRange(range ?? '..now');
  const whose = session ?? (await ownSession(timeline.present, id));
  const after = await timeline.find({ moment: to }, whose);
  const before = from === undefined ? await pointBefore(timeline, id, after) : await timeline.find({ moment: from }, whose);
  const diff = await diffObject(timeline, id, before, after, flags.context);
  const nameOf = await namesFor(review, [id]);
  return {
    lines: (colours) => objectDiffLines(diff, nameOf(id), colours),
    holds: `${pointText(before)} .. ${pointText(after)}`,
    json: objectDiffAnswer(diff, review.display),
  };
}

/** `diff <object> [A..B]`, `diff <session> [turnA..turnB]` */
export async function diffAction(name: string, range: string | undefined, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async (review) => {
    const { timeline, display } = review;
    const session = await sessionFlag(review, flags);
    const subject = await findSubject(timeline.present, name, { session, display });
    if (subject.kind === 'session') return diffOfSession(review, subject.session, range);
    const whole = /^session:/.test(subject.id) ? await ownSession(timeline.present, subject.id) : undefined;
    return whole === undefined ? diffOfObject(review, subject.id, range, session, flags) : diffOfSession(review, whole, range);
  });
}

/** `who <object>` */
export async function whoAction(name: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async (review) => {
    const id = await objectNamed(review, name, await sessionFlag(review, flags));
    const { timeline } = review;
    if (id.startsWith('session:')) throw new HistoryError('wrong-kind', `${id} is a session: who asks about a file or a tool call`);
    const sightings = await seenBy(timeline, id);
    return {
      lines: (colours) => (sightings.length === 0 ? ['no session has met it'] : sightings.flatMap((one) => sightingLines(one, colours))),
      holds: basisText(timeline.present.basis),
      json: whoAnswer(timeline.present.basis, id, sightings),
    };
  });
}

/** `query '<datalog>'` */
export async function queryAction(text: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async (review) => {
    const { timeline } = review;
    const point = await timeline.find(whenOf(flags), await sessionFlag(review, flags));
    const timeoutMs = flags.timeout === undefined ? undefined : flags.timeout * 1_000;
    const answer = await runQuery(point.snapshot, text, { limit: flags.limit, timeoutMs, args: flags.args });
    return { lines: (colours) => rowLines(answer, colours), holds: pointText(point), json: queryAnswer(point.basis, answer) };
  });
}

import { askDiff, askObject, askQuery, askTurns, askVersions, askWho } from '../history/ask/ask.js';
import { type ObjectView, requireText } from '../history/ask/object-view.js';
import type { LoggedTurn } from '../history/ask/session-log.js';
import type { Timeline } from '../history/rebuild/timeline.js';
import { logAnswer, objectDiffAnswer, queryAnswer, sessionDiffAnswer, showAnswer, whoAnswer } from '../http/review-answers.js';
import type { ObjectId } from '../objects/ids.js';
import { type Answer, answerReview, namesFor } from './answer-review.js';
import { escapedText } from './escape-text.js';
import { basisText, pointText } from './print-basis.js';
import { objectDiffLines, sessionDiffLines } from './print-diff.js';
import { turnLines, versionLines } from './print-log.js';
import { objectLines } from './print-object.js';
import { rowLines } from './print-rows.js';
import { sightingLines } from './print-who.js';
import type { ReviewFlags } from './review-flags.js';

const idsOf = (turns: readonly LoggedTurn[]): readonly ObjectId[] => turns.flatMap(({ changes }) => Object.values(changes).flat());

/** Turns of a session that are shown where nobody says how many: the transaction of each is a look-up of its own. */
const LISTED_TURNS = 100;

async function logTurns(
  timeline: Timeline,
  session: string | undefined,
  { object, limit, at, validTime, tx }: ReviewFlags,
): Promise<Answer> {
  const isBounded = session !== undefined && limit === undefined;
  const found = await askTurns(timeline, { session, object, limit: isBounded ? LISTED_TURNS + 1 : limit, at, validTime, tx });
  const isCut = isBounded && found.turns.length > LISTED_TURNS;
  const { point } = found;
  const turns = isCut ? found.turns.slice(0, LISTED_TURNS) : found.turns;
  const nameOf = await namesFor(timeline, idsOf(turns));
  return {
    lines: (colours) => (turns.length === 0 ? ['no turns'] : turns.flatMap((turn) => turnLines(turn, nameOf, colours))),
    holds: pointText(point),
    json: logAnswer(point.basis, { turns }),
    notes: isCut ? [`the newest ${LISTED_TURNS} turns; there are more (--limit)`] : [],
  };
}

async function logVersions(timeline: Timeline, object: string, { session, limit, at, validTime, tx }: ReviewFlags): Promise<Answer> {
  const { point, versions } = await askVersions(timeline, { session, object, limit, at, validTime, tx });
  return {
    lines: (colours) => (versions.length === 0 ? ['no versions then'] : versions.flatMap((version) => versionLines(version, colours))),
    holds: pointText(point),
    json: logAnswer(point.basis, { versions }),
  };
}

/** `log [session] [--object ID]` */
export async function logAction(session: string | undefined, flags: ReviewFlags): Promise<void> {
  const { object } = flags;
  await answerReview(flags, ({ timeline }) =>
    session === undefined && object !== undefined ? logVersions(timeline, object, flags) : logTurns(timeline, session, flags),
  );
}

const viewOf = (timeline: Timeline, object: string, { session, at, validTime, tx }: ReviewFlags): Promise<ObjectView> =>
  askObject(timeline, { session, object, at, validTime, tx });

/** `show <object>[@when]` */
export async function showAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const view = await viewOf(timeline, reference, flags);
    const text = flags.content === false ? undefined : await view.text();
    const { source } = view.version;
    const display = source === null ? undefined : timeline.paths.display(source);
    return {
      lines: (colours) => objectLines(view, display, text, flags.content ?? true, colours),
      holds: pointText(view.point),
      json: showAnswer(view, text, timeline.paths),
    };
  });
}

/** `cat <object>[@when]`: to a pipe or file the exact bytes, to a terminal with control characters as escapes. */
export async function catAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const view = await viewOf(timeline, reference, flags);
    const { text, whole } = await requireText(view);
    if (!whole) process.stderr.write('# only the head and the tail of this text were kept\n');
    return { lines: () => [escapedText(text)], exact: text, json: showAnswer(view, { text, whole }, timeline.paths) };
  });
}

/** `diff <object> [A..B]`, `diff <session> [turnA..turnB]` */
export async function diffAction(name: string, range: string | undefined, { context, session, ...flags }: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }): Promise<Answer> => {
    const asked = await askDiff(timeline, { name, session, range, context });
    if (asked.kind === 'object') {
      const { diff } = asked;
      const nameOf = await namesFor(timeline, [diff.id]);
      return {
        lines: (colours) => objectDiffLines(diff, nameOf(diff.id), colours),
        holds: `${pointText(diff.before.point)} .. ${pointText(diff.after.point)}`,
        json: objectDiffAnswer(diff, timeline.paths),
      };
    }
    const { diff } = asked;
    const { index, active, pinned } = diff.sets;
    const changed = [index, active, pinned].flatMap(({ added, removed }) => [...added, ...removed]);
    const nameOf = await namesFor(timeline, [...changed, ...diff.active.map(({ id }) => id)]);
    return { lines: (colours) => sessionDiffLines(diff, nameOf, colours), json: sessionDiffAnswer(diff) };
  });
}

/** `who <object>` */
export async function whoAction(object: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const { id, sightings } = await askWho(timeline, { object, session: flags.session });
    const { basis } = timeline.present;
    return {
      lines: (colours) => (sightings.length === 0 ? ['no session has met it'] : sightings.flatMap((one) => sightingLines(one, colours))),
      holds: basisText(basis),
      json: whoAnswer(basis, id, sightings),
    };
  });
}

/** `query '<datalog>'` */
export async function queryAction(
  text: string,
  { at, asOf, validTime, tx, session, limit, args, timeout, ...flags }: ReviewFlags,
): Promise<void> {
  const timeoutMs = timeout === undefined ? undefined : timeout * 1_000;
  await answerReview(flags, async ({ timeline }) => {
    const { point, answer } = await askQuery(timeline, text, { at: at ?? asOf, validTime, tx, session, limit, args, timeoutMs });
    return { lines: (colours) => rowLines(answer, colours), holds: pointText(point), json: queryAnswer(point.basis, answer) };
  });
}

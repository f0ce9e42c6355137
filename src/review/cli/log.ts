import { hanging } from '../../cli/fitted-table.js';
import { type Colours, escapedLine } from '../../cli/output.js';
import {
  type Answer,
  answerReview,
  basisText,
  pointText,
  type ReviewFlags,
  shownTime,
} from '../../cli/review/answer.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { ranges } from '../../history/rebuild/turn-spans.js';
import type { ObjectId } from '../../objects/ids.js';
import { askTurns, askVersions, askWho } from '../ask/ask.js';
import type { LoggedTurn } from '../ask/logged-turn.js';
import type { LoggedVersion } from '../ask/object-log.js';
import type { DamagedSession } from '../ask/seen-by.js';
import type { Sighting } from '../ask/sighting.js';
import { failedEdits } from '../authors/failed-edits.js';
import { namesFor } from './object-names.js';
import { MOST_NAMES, turnLines } from './turn-lines.js';

/** Formats one version of an object. */
export function versionLines(version: LoggedVersion, colours: Colours, ids = true): readonly string[] {
  const { number, state, type, validTime, txTime, txId, chars, contentHash } = version;
  const what =
    state === 'text'
      ? `${chars} chars${contentHash === null || !ids ? '' : `, content ${contentHash.slice(0, 12)}`}`
      : state;
  return [
    `${colours.yellow(`version ${number}`)} ${colours.dim(type ?? '')} ${what}`,
    colours.dim(`  valid  ${shownTime(validTime)}`),
    colours.dim(`  known  ${shownTime(txTime)}, transaction ${txId}`),
    '',
  ];
}

/** Returns the objects that the lines of some turns name. */
const namedIn = (turns: readonly LoggedTurn[]): readonly ObjectId[] =>
  turns
    .flatMap(({ changes, person }) => [changes, ...person.map((one) => one.changes)])
    .flatMap((changes) => Object.values(changes).flatMap((ids) => ids.slice(0, MOST_NAMES)));

/** Default limit of listed turns. The transaction of each turn takes its own query. */
const LISTED_TURNS = 100;

async function logTurns(timeline: Timeline, session: string | undefined, flags: ReviewFlags): Promise<Answer> {
  const isBounded = session !== undefined && flags.limit === undefined;
  const { point, turns: found } = await askTurns(timeline, {
    ...flags,
    session,
    ...(isBounded ? { limit: LISTED_TURNS + 1 } : {}),
  });
  const isCut = isBounded && found.length > LISTED_TURNS;
  const turns = isCut ? found.slice(0, LISTED_TURNS) : found;
  const { ids } = flags;
  const [nameOf, sights] = await Promise.all([
    namesFor(timeline, namedIn(turns), { ids }),
    failedEdits(timeline, turns),
  ]);
  return {
    lines: (colours, width) =>
      turns.length === 0
        ? ['no turns']
        : turns.flatMap((turn) => turnLines(turn, { nameOf, colours, width, ids, sights })),
    holds: pointText(point),
    json: async () => (await import('../http/review-answers.js')).logAnswer(point.basis, { turns, sights }),
    notes: isCut ? [`the newest ${LISTED_TURNS} turns; there are more (--limit)`] : [],
  };
}

async function logVersions(timeline: Timeline, object: string, flags: ReviewFlags): Promise<Answer> {
  const { point, versions } = await askVersions(timeline, { ...flags, object });
  return {
    lines: (colours, width) =>
      versions.length === 0
        ? ['no versions then']
        : versions.flatMap((version) => versionLines(version, colours, flags.ids ?? width === undefined)),
    holds: pointText(point),
    json: async () => (await import('../http/review-answers.js')).logAnswer(point.basis, { versions }),
  };
}

/** Runs `log [session] [--object ID]`. */
export async function logAction(session: string | undefined, flags: ReviewFlags): Promise<void> {
  const { object } = flags;
  await answerReview(flags, ({ timeline }) =>
    session === undefined && object !== undefined
      ? logVersions(timeline, object, flags)
      : logTurns(timeline, session, flags),
  );
}

/** Describes the contexts that contained an object. */
function contextLines({
  sent,
  transcript,
  unseen,
}: Pick<Sighting, 'sent' | 'transcript' | 'unseen'>): readonly string[] {
  const lines = [
    ...(sent.length === 0 ? [] : [`  sent         in full in turns ${ranges(sent)}`]),
    ...(transcript.length === 0 ? [] : [`  transcript   in full in turns ${ranges(transcript)}, from the transcript`]),
    ...(unseen.length === 0
      ? []
      : [`  not seen     Palimpsest did not see the model's requests in turns ${ranges(unseen)}`]),
  ];
  return lines.length === 0 ? ['  sent         never in full'] : lines;
}

/** Width of the names before the facts about a session. */
const LABEL = 15;

/** Describes the versions of an object that one session saw. */
function sightingLines(sighting: Sighting, colours: Colours, width: number | undefined): readonly string[] {
  const { session, known, touched, active, sent, transcript, unseen, versions, isActive, isPinned } = sighting;
  const now = [isActive ? 'active now' : 'not active now', ...(isPinned ? ['pinned'] : [])].join(', ');
  const lines = [
    `  known from   turn ${known.turn}, step ${known.seq}, ${shownTime(known.at)}`,
    `  touched in   ${touched.length === 0 ? 'no turn' : `turns ${ranges(touched)}`}`,
    `  active set   ${active.length === 0 ? 'never in it' : `turns ${ranges(active)}`}`,
    ...contextLines({ sent, transcript, unseen }),
    ...versions.map(({ txId, validTime, turns, steps }) => {
      const runs = steps.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`)).join(', ');
      return (
        `  version      tx:${txId} of ${shownTime(validTime)} active in turns ${ranges(turns)}, after steps ` +
        `${runs}`
      );
    }),
  ];
  return [
    `${colours.yellow(`session ${session}`)} ${colours.dim(`(${now})`)}`,
    ...lines.flatMap((line) => hanging(line.slice(0, LABEL), line.slice(LABEL), { width, indent: LABEL })),
    '',
  ];
}

/** Describes a session that cannot be read. */
const damagedLines = (
  { session, why }: DamagedSession,
  colours: Colours,
  width: number | undefined,
): readonly string[] => [
  `${colours.yellow(`session ${session}`)} ${colours.dim('(damaged)')}`,
  ...hanging('  not read     ', escapedLine(`${why}; see palimpsest verify ${session}`), { width, indent: LABEL }),
  '',
];

/** Runs `who <object>`. */
export async function whoAction(object: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const { id, ...found } = await askWho(timeline, { object, session: flags.session });
    const { sightings, damaged } = found;
    const nameOf = await namesFor(timeline, [id], flags);
    const { basis } = timeline.present;
    return {
      lines: (colours, width) => [
        sightings.length > 0
          ? colours.bold(escapedLine(nameOf(id)))
          : `no ${damaged.length === 0 ? '' : 'readable '}session has seen it`,
        ...sightings.flatMap((one) => sightingLines(one, colours, width)),
        ...damaged.flatMap((one) => damagedLines(one, colours, width)),
      ],
      holds: basisText(basis),
      json: async () => (await import('../http/review-answers.js')).whoAnswer(basis, id, found),
    };
  });
}

import { askQuery, askTurns, askVersions, askWho } from '../../history/ask/ask.js';
import type { LoggedCall, LoggedEvent, LoggedTurn } from '../../history/ask/logged-turn.js';
import type { LoggedVersion } from '../../history/ask/object-log.js';
import type { QueryAnswer } from '../../history/ask/run-query.js';
import type { Sighting } from '../../history/ask/seen-by.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { ranges } from '../../history/rebuild/turn-spans.js';
import type { Json } from '../../objects/canonical-json.js';
import type { ObjectId } from '../../objects/ids.js';
import { VERBS } from '../../session/verb-outcome.js';
import { type Colours, columns, escapedLine, firstLine } from '../output.js';
import {
  type Answer,
  answerReview,
  basisText,
  type NameOf,
  namesFor,
  pointText,
  type ReviewFlags,
  shortName,
  shownTime,
  wireAnswers,
} from './answer.js';

const TEXT_WIDTH = 110;
const MOST_NAMES = 6;

function names(ids: readonly ObjectId[], nameOf: NameOf): string {
  const shown = ids.slice(0, MOST_NAMES).map((id) => escapedLine(nameOf(id)));
  return `${shown.join(', ')}${ids.length > MOST_NAMES ? ` and ${ids.length - MOST_NAMES} more` : ''}`;
}

function callLine({ seq, tool, status, args, chars, id }: LoggedCall, colours: Colours): string {
  const state = status === 'ok' ? '' : colours.red(` ${escapedLine(status)}`);
  return (
    `    ${colours.dim(`${seq}`.padStart(4))}  ${colours.cyan(escapedLine(tool))} ` +
    `${firstLine(args, TEXT_WIDTH)}${state} ${colours.dim(`${chars} chars ${shortName(id)}`)}`
  );
}

const CHANGES = {
  index: '+index',
  activate: '+active',
  deactivate: '-active',
  pin: '+pinned',
  unpin: '-pinned',
} as const;

function changeLines({ changes }: LoggedTurn, nameOf: NameOf, colours: Colours): readonly string[] {
  return (Object.keys(CHANGES) as (keyof typeof CHANGES)[]).flatMap((name) => {
    if (changes[name].length === 0) return [];
    const label = CHANGES[name];
    const colour = name === 'index' ? colours.dim : label.startsWith('+') ? colours.green : colours.red;
    return [`    ${colour(label.padStart(12))}  ${names(changes[name], nameOf)}`];
  });
}

/** Formats the token usage that a provider reported for a model call. */
function usageText(usage: NonNullable<LoggedTurn['messages'][number]['usage']>): string {
  const { input, output, cacheRead, cacheWrite, cacheMiss, thinkingDropped } = usage;
  const parts = [
    [cacheRead, 'from the cache'],
    [cacheWrite, 'into it'],
    [input, 'neither'],
    [output, 'out'],
  ] as const;
  const tokens = parts.flatMap(([counted, what]) => (counted === undefined ? [] : [`${counted} ${what}`]));
  const reported = [
    ...(tokens.length === 0 ? [] : [`tokens: ${tokens.join(', ')}`]),
    ...(cacheMiss === undefined ? [] : [`cache missed: ${escapedLine(cacheMiss.reason)}`]),
    ...(thinkingDropped === undefined ? [] : [`dropped thinking blocks: ${thinkingDropped}`]),
  ];
  return reported.join('; ');
}

/** Describes a new epoch of contexts and the reason for it. */
function epochText({ number, reason, price }: LoggedTurn['epochs'][number]): string {
  const paid = price === undefined ? '' : `: ${price.written} tokens written again, ${price.savedPerCall} saved a call`;
  return `epoch ${number} began (${reason})${paid}`;
}

/** Meaning of each event on a step. */
const EVENTS: Readonly<Record<LoggedEvent['kind'], string>> = {
  compacted: 'the harness compacted its history',
  shortened: 'the harness sends less of its history',
  diverged: "the harness's history continues differently",
  forked: "the harness's history branches here",
  paused: "Palimpsest was turned off: the harness's own list goes out from here",
  resumed: 'Palimpsest was turned on',
  bypassed: "a model call went out with the harness's own list",
  lost: 'an acknowledged step was lost in a damaged journal',
};

function eventLine({ seq, kind, detail }: LoggedEvent, colours: Colours): string {
  const said = detail === undefined ? '' : `: ${firstLine(detail, TEXT_WIDTH)}`;
  return `    ${colours.dim(`${seq}`.padStart(4))}  ${colours.magenta(EVENTS[kind])}${said}`;
}

/** A person's change to the sets. */
function personLine({ seq, undoes, changes }: LoggedTurn['person'][number], nameOf: NameOf, colours: Colours): string {
  const done = VERBS.flatMap((verb) => (changes[verb].length === 0 ? [] : [`${verb} ${names(changes[verb], nameOf)}`]));
  const what = undoes === undefined ? '' : ` took back step ${undoes}:`;
  return `    ${colours.dim(`${seq}`.padStart(4))}  ${colours.bold('person')}${what} ${done.join('; ')}`;
}

/** Formats one turn: a headline, both times, messages, calls, and changes of the sets. */
export function turnLines(turn: LoggedTurn, nameOf: NameOf, colours: Colours): readonly string[] {
  const { session, from, to, known, firstStep, lastStep, rule } = turn;
  const steps = firstStep === lastStep ? `step ${firstStep}` : `steps ${firstStep}-${lastStep}`;
  const isSame = from.getTime() === to.getTime();
  const rows = [
    ...turn.messages.map(({ seq, role, text, usage }) => {
      const said = `${colours.bold(escapedLine(role))}: ${firstLine(text, TEXT_WIDTH)}`;
      const took = usage === undefined ? '' : colours.dim(` (${usageText(usage)})`);
      return { seq, line: `    ${colours.dim(`${seq}`.padStart(4))}  ${said}${took}` };
    }),
    ...turn.calls.flatMap((call) => [
      { seq: call.seq, line: callLine(call, colours) },
      ...call.notes.map((note) => ({
        seq: call.seq,
        line: `          ${colours.yellow('note')} ${firstLine(note, TEXT_WIDTH)}`,
      })),
    ]),
    ...turn.events.map((event) => ({ seq: event.seq, line: eventLine(event, colours) })),
    ...turn.person.map((one) => ({ seq: one.seq, line: personLine(one, nameOf, colours) })),
    ...turn.epochs.map((epoch) => ({ seq: epoch.seq, line: `          ${colours.magenta(epochText(epoch))}` })),
  ].sort((a, b) => a.seq - b.seq);
  return [
    `${colours.yellow(`turn ${turn.turn}`)} ` +
      `${colours.dim(`of ${session}, ${steps}${rule === undefined ? '' : `, opened by ${rule}`}`)}`,
    `  valid  ${shownTime(from)}${isSame ? '' : ` to ${shownTime(to)}`}`,
    '  known  ' +
      (known === undefined ? 'not in the database yet' : `${shownTime(known.txTime)}, transaction ${known.txId}`),
    ...rows.map(({ line }) => line),
    ...changeLines(turn, nameOf, colours),
    '',
  ];
}

/** Formats one version of an object. */
export function versionLines(version: LoggedVersion, colours: Colours): readonly string[] {
  const { number, state, type, validTime, txTime, txId, chars, contentHash } = version;
  const what =
    state === 'text' ? `${chars} chars${contentHash === null ? '' : `, content ${contentHash.slice(0, 12)}`}` : state;
  return [
    `${colours.yellow(`version ${number}`)} ${colours.dim(type ?? '')} ${what}`,
    `  valid  ${shownTime(validTime)}`,
    `  known  ${shownTime(txTime)}, transaction ${txId}`,
    '',
  ];
}

/** Returns the objects that the lines of some turns name. */
const namedIn = (turns: readonly LoggedTurn[]): readonly ObjectId[] =>
  turns
    .flatMap(({ changes, person }) => [changes, ...person.map((one) => one.changes)])
    .flatMap((changes) => Object.values(changes).flatMap((ids) => ids.slice(0, MOST_NAMES)));

/** Default limit of listed turns: the transaction of each turn takes its own query. */
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
  const nameOf = await namesFor(timeline, namedIn(turns));
  return {
    isList: true,
    lines: (colours) => (turns.length === 0 ? ['no turns'] : turns.flatMap((turn) => turnLines(turn, nameOf, colours))),
    holds: pointText(point),
    json: async () => (await wireAnswers()).logAnswer(point.basis, { turns }),
    notes: isCut ? [`the newest ${LISTED_TURNS} turns; there are more (--limit)`] : [],
  };
}

async function logVersions(timeline: Timeline, object: string, flags: ReviewFlags): Promise<Answer> {
  const { point, versions } = await askVersions(timeline, { ...flags, object });
  return {
    lines: (colours) =>
      versions.length === 0 ? ['no versions then'] : versions.flatMap((version) => versionLines(version, colours)),
    holds: pointText(point),
    json: async () => (await wireAnswers()).logAnswer(point.basis, { versions }),
  };
}

/** `log [session] [--object ID]` */
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

/** Describes the versions of an object that one session saw. */
function sightingLines(sighting: Sighting, colours: Colours): readonly string[] {
  const { session, known, touched, active, sent, transcript, unseen, versions, isActive, isPinned } = sighting;
  const now = [isActive ? 'active now' : 'not active now', ...(isPinned ? ['pinned'] : [])].join(', ');
  return [
    `${colours.yellow(`session ${session}`)} ${colours.dim(`(${now})`)}`,
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
    '',
  ];
}

/** `who <object>` */
export async function whoAction(object: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const { id, sightings } = await askWho(timeline, { object, session: flags.session });
    const { basis } = timeline.present;
    return {
      isList: true,
      lines: (colours) =>
        sightings.length === 0 ? ['no session has seen it'] : sightings.flatMap((one) => sightingLines(one, colours)),
      holds: basisText(basis),
      json: async () => (await wireAnswers()).whoAnswer(basis, id, sightings),
    };
  });
}

const cell = (value: Json): string => escapedLine(typeof value === 'string' ? value : JSON.stringify(value));

/** Formats the rows of a query. */
function rowLines({ columns: headings, rows, limit, isCut }: QueryAnswer, colours: Colours): readonly string[] {
  const table = columns(
    headings,
    rows.map((row) => row.map(cell)),
    colours,
  );
  const cut = isCut ? [colours.yellow(`# cut at ${limit} rows: there are more (--limit, or :limit in the query)`)] : [];
  return [...table, colours.dim(`# ${rows.length} rows`), ...cut];
}

/** `query '<datalog>'` */
export async function queryAction(
  text: string,
  { at, asOf, validTime, tx, session, limit, args, timeout, storage, ...flags }: ReviewFlags,
): Promise<void> {
  const timeoutMs = timeout === undefined ? undefined : timeout * 1_000;
  await answerReview(flags, async ({ timeline }) => {
    const asked = { at: at ?? asOf, validTime, tx, session, limit, args, timeoutMs, storage };
    const { point, answer } = await askQuery(timeline, text, asked);
    return {
      lines: (colours) => rowLines(answer, colours),
      holds: pointText(point),
      json: async () => (await wireAnswers()).queryAnswer(point.basis, answer),
    };
  });
}

import { cellsOf, hanging, shortened } from '../../cli/fitted-table.js';
import { type Colours, escapedLine, firstLine, grouped } from '../../cli/output.js';
import { shownTime, shownTimes } from '../../cli/review/answer.js';
import type { ObjectId } from '../../objects/ids.js';
import { VERBS } from '../../session/verb-outcome.js';
import type { LoggedCall, LoggedEvent, LoggedTurn } from '../ask/logged-turn.js';
import type { EditSight } from '../authors/edit-sight.js';
import { type NameOf, shortName } from './object-names.js';

/** How turns are shown. */
export interface TurnStyle {
  readonly nameOf: NameOf;
  readonly colours: Colours;
  /** Undefined if the output is not a terminal. Lines are not shortened then. */
  readonly width: number | undefined;
  /** Whether calls show their ids. */
  readonly ids?: boolean | undefined;
  /** The texts that the agent had seen of the files of failed edits, by call. */
  readonly sights?: ReadonlyMap<ObjectId, readonly EditSight[]>;
}

const TEXT_CHARS = 240;
/** Maximum number of objects that a line names on a terminal. */
export const MOST_NAMES = 6;
/** Column at which text begins, behind the number of its step. */
const INDENT = 10;
const LONGEST_NAME = 40;

/** Names some objects in one line. */
function namesText(ids: readonly ObjectId[], { nameOf, width }: Pick<TurnStyle, 'nameOf' | 'width'>): string {
  const named = (id: ObjectId): string => {
    const name = escapedLine(nameOf(id));
    return width === undefined ? name : shortened(name, LONGEST_NAME, 'end');
  };
  const shown = ids.slice(0, MOST_NAMES).map(named);
  return `${shown.join(', ')}${ids.length > MOST_NAMES ? ` and ${ids.length - MOST_NAMES} more` : ''}`;
}

/** Formats a text behind the number of its step. */
function stepLines(seq: number | undefined, text: string, { colours, width }: TurnStyle): readonly string[] {
  const number = seq === undefined ? '' : `${seq}`;
  return hanging(`${number.padStart(8)}  `, text, { width, indent: INDENT }).map((line, i) =>
    i === 0 ? `${colours.dim(line.slice(0, INDENT))}${line.slice(INDENT)}` : line,
  );
}

function callLine({ seq, name, status, chars, id }: LoggedCall, { colours, width, ids }: TurnStyle): string {
  const isFailed = status !== 'ok';
  const size = ` ${grouped(chars)} chars${ids === true ? ` ${shortName(id)}` : ''}`;
  const shown = escapedLine(name);
  const mark = isFailed ? ' ✗' : '';
  const room = width === undefined ? undefined : width - INDENT - size.length - mark.length;
  const text = room === undefined ? shown : shortened(shown, room);
  const [tool = '', ...rest] = text.split(' ');
  const said = [colours.cyan(tool), ...rest].join(' ');
  return `${colours.dim(`${seq}`.padStart(8))}  ${said}${isFailed ? colours.red(mark) : ''}${colours.dim(size)}`;
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
  const tokens = parts.flatMap(([counted, what]) => (counted === undefined ? [] : [`${grouped(counted)} ${what}`]));
  const reported = [
    ...(tokens.length === 0 ? [] : [`tokens: ${tokens.join(', ')}`]),
    ...(cacheMiss === undefined ? [] : [`cache missed: ${escapedLine(cacheMiss.reason)}`]),
    ...(thinkingDropped === undefined ? [] : [`dropped thinking blocks: ${thinkingDropped}`]),
  ];
  return reported.join('; ');
}

/** Describes a new epoch of contexts and the reason for it. */
function epochText({ number, reason, price }: LoggedTurn['epochs'][number]): string {
  const paid =
    price === undefined
      ? ''
      : `: ${grouped(price.written)} tokens written again, ${grouped(price.savedPerCall)} saved a call`;
  return `epoch ${number} began (${reason})${paid}`;
}

/** Meaning of each event on a step. */
const EVENTS: Readonly<Record<LoggedEvent['kind'], string>> = {
  compacted: 'the harness compacted its history',
  shortened: 'the harness sends less of its history',
  diverged: "the harness's history continues differently",
  forked: 'everything before was made in another session',
  paused: "Palimpsest was turned off: the next requests are the harness's own list",
  resumed: 'Palimpsest was turned on',
  bypassed: "a model call used the harness's own list",
  lost: 'an acknowledged step was lost in a damaged journal',
};

/** Describes a person's change of the sets. */
function personText({ undoes, changes }: LoggedTurn['person'][number], style: TurnStyle): string {
  const done = VERBS.flatMap((verb) =>
    changes[verb].length === 0 ? [] : [`${verb} ${namesText(changes[verb], style)}`],
  );
  const what = undoes === undefined ? '' : ` undid step ${undoes}:`;
  return `person${what} ${done.join('; ')}`;
}

function messageLines({ seq, role, text, usage }: LoggedTurn['messages'][number], style: TurnStyle): readonly string[] {
  const { colours } = style;
  const shown = firstLine(text, TEXT_CHARS);
  const [first = '', ...rest] = stepLines(seq, `${escapedLine(role)}: ${shown}`, style);
  const said =
    text === '' ? [] : [first.replace(`${escapedLine(role)}:`, colours.bold(`${escapedLine(role)}:`)), ...rest];
  if (usage === undefined) return said;
  return [
    ...said,
    ...stepLines(text === '' ? seq : undefined, usageText(usage), style).map((line) => colours.dim(line)),
  ];
}

/** Returns the lines of a turn's messages and calls, in the order of its steps. */
function happened(turn: LoggedTurn, style: TurnStyle): readonly string[] {
  const { colours } = style;
  const rows = [
    ...turn.messages.map((message) => ({ seq: message.seq, lines: messageLines(message, style) })),
    ...turn.calls.map((call) => ({
      seq: call.seq,
      lines: [
        callLine(call, style),
        ...[
          ...call.notes.map((note) => `note ${note}`),
          ...(style.sights?.get(call.id) ?? []).map(({ sentence }) => sentence),
        ].flatMap((note) =>
          stepLines(undefined, firstLine(note, TEXT_CHARS), style).map((line) => colours.yellow(line)),
        ),
      ],
    })),
    ...turn.events.map(({ seq, kind, detail }) => ({
      seq,
      lines: stepLines(
        seq,
        `${EVENTS[kind]}${detail === undefined ? '' : `: ${firstLine(detail, TEXT_CHARS)}`}`,
        style,
      ).map((line) => colours.magenta(line)),
    })),
    ...turn.person.map((one) => ({ seq: one.seq, lines: stepLines(one.seq, personText(one, style), style) })),
    ...turn.epochs.map((epoch) => ({
      seq: epoch.seq,
      lines: stepLines(undefined, epochText(epoch), style).map((line) => colours.magenta(line)),
    })),
  ].sort((a, b) => a.seq - b.seq);
  return rows.flatMap(({ lines }) => lines);
}

const CHANGES = {
  index: '+index',
  activate: '+active',
  deactivate: '-active',
  pin: '+pinned',
  unpin: '-pinned',
} as const;

function changeLines({ changes }: LoggedTurn, style: TurnStyle): readonly string[] {
  const { colours, width } = style;
  return (Object.keys(CHANGES) as (keyof typeof CHANGES)[]).flatMap((name) => {
    if (changes[name].length === 0) return [];
    const label = CHANGES[name].padStart(8);
    const colour = name === 'index' ? colours.dim : label.trim().startsWith('+') ? colours.green : colours.red;
    return hanging(`${label}  `, namesText(changes[name], style), { width, indent: INDENT }).map((line, i) =>
      i === 0 ? `${colour(line.slice(0, label.length))}${line.slice(label.length)}` : line,
    );
  });
}

/** Formats one turn: messages, calls and changes of the sets, then both clocks. */
export function turnLines(turn: LoggedTurn, style: TurnStyle): readonly string[] {
  const { session, from, to, known, firstStep, lastStep, rule } = turn;
  const { colours, width } = style;
  const steps = firstStep === lastStep ? `step ${firstStep}` : `steps ${firstStep}-${lastStep}`;
  const head = `turn ${turn.turn}`;
  const of = ` of ${session}, ${steps}${rule === undefined ? '' : `, opened by ${rule}`}`;
  const room = width === undefined ? undefined : width - cellsOf(head);
  return [
    `${colours.yellow(head)}${colours.dim(room === undefined ? of : shortened(of, room))}`,
    ...happened(turn, style),
    ...changeLines(turn, style),
    ...[
      ['   valid  ', shownTimes(from, to)],
      [
        '   known  ',
        known === undefined ? 'not in the database yet' : `${shownTime(known.txTime)}, transaction ${known.txId}`,
      ],
    ].flatMap(([label = '', times = '']) =>
      hanging(label, times, { width, indent: INDENT }).map((line) => colours.dim(line)),
    ),
    '',
  ];
}

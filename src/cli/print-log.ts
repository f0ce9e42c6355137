import type { LoggedVersion } from '../history/ask/object-log.js';
import type { LoggedCall, LoggedTurn } from '../history/ask/session-log.js';
import type { ObjectId } from '../objects/ids.js';
import { escapedLine, firstLine } from './escape-text.js';
import type { Colours } from './output.js';
import { shownTime } from './print-basis.js';

/** What an object is called in a log: its path, or its id. */
export type NameOf = (id: ObjectId) => string;

const TEXT_WIDTH = 110;
const MOST_NAMES = 6;

/** Digests are long: twelve characters name one well enough. */
export function shortName(id: string): string {
  return /^[0-9a-f]{64}$/.test(id) ? id.slice(0, 12) : escapedLine(id);
}

function names(ids: readonly ObjectId[], nameOf: NameOf): string {
  const shown = ids.slice(0, MOST_NAMES).map((id) => escapedLine(nameOf(id)));
  return `${shown.join(', ')}${ids.length > MOST_NAMES ? ` and ${ids.length - MOST_NAMES} more` : ''}`;
}

function callLine({ seq, tool, status, args, chars, id }: LoggedCall, colours: Colours): string {
  const state = status === 'ok' ? '' : colours.red(` ${escapedLine(status)}`);
  return `    ${colours.dim(`${seq}`.padStart(4))}  ${colours.cyan(escapedLine(tool))} ${firstLine(args, TEXT_WIDTH)}${state} ${colours.dim(`${chars} chars ${shortName(id)}`)}`;
}

type ChangeName = keyof LoggedTurn['changes'];
const CHANGES: Readonly<Record<Exclude<ChangeName, 'index'>, string>> = {
  activate: '+active',
  deactivate: '-active',
  pin: '+pinned',
  unpin: '-pinned',
};

function changeLines({ changes }: LoggedTurn, nameOf: NameOf, colours: Colours): readonly string[] {
  const found = changes.index.length === 0 ? [] : [`    ${colours.dim('      +index')}  ${names(changes.index, nameOf)}`];
  const sets = (Object.keys(CHANGES) as (keyof typeof CHANGES)[]).flatMap((name) => {
    const ids = changes[name];
    if (ids.length === 0) return [];
    const label = CHANGES[name];
    const colour = label.startsWith('+') ? colours.green : colours.red;
    return [`    ${colour(label.padStart(12))}  ${names(ids, nameOf)}`];
  });
  return [...found, ...sets];
}

/** One turn: a headline, both times, what was said and called, what became of the sets. */
export function turnLines(turn: LoggedTurn, nameOf: NameOf, colours: Colours): readonly string[] {
  const { session, from, to, known, firstStep, lastStep, rule } = turn;
  const steps = firstStep === lastStep ? `step ${firstStep}` : `steps ${firstStep}-${lastStep}`;
  const isSame = from.getTime() === to.getTime();
  const rows = [
    ...turn.messages.map(({ seq, role, text }) => ({
      seq,
      line: `    ${colours.dim(`${seq}`.padStart(4))}  ${colours.bold(escapedLine(role))}: ${firstLine(text, TEXT_WIDTH)}`,
    })),
    ...turn.calls.map((call) => ({ seq: call.seq, line: callLine(call, colours) })),
  ].sort((a, b) => a.seq - b.seq);
  return [
    `${colours.yellow(`turn ${turn.turn}`)} ${colours.dim(`of ${session}, ${steps}${rule === undefined ? '' : `, opened by ${rule}`}`)}`,
    `  valid  ${shownTime(from)}${isSame ? '' : ` to ${shownTime(to)}`}`,
    `  known  ${known === undefined ? 'not in the database yet' : `${shownTime(known.txTime)}, transaction ${known.txId}`}`,
    ...rows.map(({ line }) => line),
    ...changeLines(turn, nameOf, colours),
    '',
  ];
}

/** One version of an object. */
export function versionLines(version: LoggedVersion, colours: Colours): readonly string[] {
  const { number, state, type, validTime, txTime, txId, chars, contentHash } = version;
  const what = state === 'text' ? `${chars} chars${contentHash === null ? '' : `, content ${contentHash.slice(0, 12)}`}` : state;
  return [
    `${colours.yellow(`version ${number}`)} ${colours.dim(type ?? '')} ${what}`,
    `  valid  ${shownTime(validTime)}`,
    `  known  ${shownTime(txTime)}, transaction ${txId}`,
    '',
  ];
}

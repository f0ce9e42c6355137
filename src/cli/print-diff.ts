import type { ActiveDiff, DiffSide, ObjectDiff, SessionDiff, SetDiff } from '../history/ask/diff.js';
import { type TextDiff, unifiedLines } from '../history/ask/text-diff.js';
import { escapedLine, escapedText } from './escape-text.js';
import type { Colours } from './output.js';
import { pointText, shownTime } from './print-basis.js';
import type { NameOf } from './print-log.js';

function coloured(line: string, colours: Colours): string {
  const shown = escapedText(line);
  if (line.startsWith('@@')) return colours.cyan(shown);
  if (line.startsWith('+')) return colours.green(shown);
  return line.startsWith('-') ? colours.red(shown) : shown;
}

/** The lines of a difference, coloured. */
export function diffLines(diff: TextDiff, colours: Colours): readonly string[] {
  return unifiedLines(diff).map((line) => coloured(line, colours));
}

function sideLine(mark: '---' | '+++', name: string, { view }: DiffSide): string {
  if (view === undefined) return `${mark} /dev/null`;
  const { txId, validTime } = view.times;
  return `${mark} ${escapedLine(name)}\ttx:${txId} ${shownTime(validTime)}${view.gone ? ' (deleted)' : ''}`;
}

/** How an object changed, as a unified diff. */
export function objectDiffLines({ before, after, diff }: ObjectDiff, name: string, colours: Colours): readonly string[] {
  const isSame = diff.equal && (before.view === undefined) === (after.view === undefined);
  if (isSame) return [`the text of ${escapedLine(name)} is the same at both moments`];
  return [colours.bold(sideLine('---', name, before)), colours.bold(sideLine('+++', name, after)), ...diffLines(diff, colours)];
}

function setLines(label: string, { added, removed }: SetDiff, nameOf: NameOf, colours: Colours): readonly string[] {
  if (added.length === 0 && removed.length === 0) return [];
  const lines = [
    ...removed.map((id) => colours.red(`  -${escapedLine(nameOf(id))}`)),
    ...added.map((id) => colours.green(`  +${escapedLine(nameOf(id))}`)),
  ];
  return [colours.bold(`${label}: ${added.length} added, ${removed.length} removed`), ...lines];
}

function activeLines({ id, change, charsBefore, charsAfter, diff }: ActiveDiff, nameOf: NameOf, colours: Colours): readonly string[] {
  if (diff === undefined) return [];
  const name = escapedLine(nameOf(id));
  return ['', colours.bold(`${change} while active: ${name} (${charsBefore} → ${charsAfter} chars)`), ...diffLines(diff, colours)];
}

/** How a session changed: its sets, then the texts of what stayed active and changed. */
export function sessionDiffLines({ session, from, to, sets, active }: SessionDiff, nameOf: NameOf, colours: Colours): readonly string[] {
  const body = [
    ...setLines('index and pool', sets.index, nameOf, colours),
    ...setLines('active', sets.active, nameOf, colours),
    ...setLines('pinned', sets.pinned, nameOf, colours),
    ...active.flatMap((one) => activeLines(one, nameOf, colours)),
  ];
  return [
    colours.yellow(`session ${session}`),
    `  from  ${pointText(from)}`,
    `  to    ${pointText(to)}`,
    '',
    ...(body.length === 0 ? ['nothing in its context changed'] : body),
  ];
}

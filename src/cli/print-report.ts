import type { ContextLedger, ObjectEntry, ReportedContext } from '../history/ask/context-report.js';
import { escapedLine } from './escape-text.js';
import type { Colours } from './output.js';
import { shortName } from './print-log.js';
import { columns } from './print-rows.js';

const count = (n: number): string => n.toLocaleString('en-US');

/** Objects that a ledger lists by name; the rest stands in one line. */
const LARGEST = 25;

function share(part: number, whole: number): string {
  return whole === 0 ? '' : `${((100 * part) / whole).toFixed(1)}%`;
}

/** The contexts of a session, one a line. */
export function reportLines(reported: readonly ReportedContext[], colours: Colours): readonly string[] {
  const headings = ['turn', 'step', 'tokens', 'chars', 'system', 'pool', 'chat', 'active', ''];
  const rows = reported.map(({ context, ledger }) => [
    `${context.turn}`,
    `${context.step}`,
    count(ledger.total.tokens),
    count(ledger.total.chars),
    ...ledger.sections.map(({ tokens }) => count(tokens)),
    context.source === 'record' ? `handed out (${context.delivered})` : 'end of the turn',
  ]);
  return rows.length === 0 ? ['no contexts'] : columns(headings, rows, colours);
}

function objectRow({ id, name, type, active, rawChars, shown }: ObjectEntry, { total }: ContextLedger): readonly string[] {
  const state = active ? 'active' : 'line';
  return [
    count(shown.tokens),
    share(shown.tokens, total.tokens),
    count(rawChars),
    count(shown.chars),
    state,
    type,
    `${escapedLine(name)} ${shortName(id)}`,
  ];
}

/** The ledger of one context: its sections, then its objects, the largest first, raw against shown size. */
export function ledgerLines(ledger: ContextLedger, colours: Colours): readonly string[] {
  const { sections, total, objects, rawChars } = ledger;
  const parts = sections.map(({ name, chars, tokens }) => [name, count(tokens), share(tokens, total.tokens), count(chars)]);
  const shown = objects.slice(0, LARGEST);
  const rest = objects.length - shown.length;
  return [
    ...columns(['section', 'tokens', 'share', 'chars'], [...parts, ['all', count(total.tokens), '100.0%', count(total.chars)]], colours),
    '',
    `objects: ${count(rawChars)} chars stored, ${count(objects.reduce((sum, object) => sum + object.shown.chars, 0))} shown`,
    ...columns(
      ['tokens', 'share', 'raw chars', 'shown', '', 'type', 'object'],
      shown.map((object) => objectRow(object, ledger)),
      colours,
    ),
    ...(rest > 0 ? [`and ${count(rest)} smaller ones`] : []),
  ];
}

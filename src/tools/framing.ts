import { isBare, renderedValue } from '../assembly/rendered-value.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { ObjectId } from '../objects/ids.js';
import { shortId } from '../session/object-reference.js';
import { firstUnits } from '../values/surrogate-pairs.js';
import type { OutputLimits, Page } from './page.js';

type FieldValue = string | number | undefined;

/** A value of a header: as the context renders it (decision E3), and quoted where a bracket could end the header. */
export function headerValue(value: string | number): string {
  const text = String(value);
  if (!isBare(text)) return renderedValue(text);
  return /[[\]]/.test(text) ? JSON.stringify(text) : text;
}

function fieldList(fields: Readonly<Record<string, FieldValue>>): string {
  let list = '';
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) list += ` ${name}=${headerValue(value)}`;
  return list;
}

/** The first line of an answer: `[file id=… path=… lines=1-20/20 chars=345]`. */
export function headerLine(kind: string, fields: Readonly<Record<string, FieldValue>>): string {
  return `[${kind}${fieldList(fields)}]`;
}

/** `1-20/20`, or `0` for an empty text. */
export function lineRange(page: Page): string {
  return page.totalLines === 0 ? '0' : `${page.firstLine}-${page.lastLine}/${page.totalLines}`;
}

/** The last line of a page after which more follows: what was shown and the call that continues it. */
export function continuation(
  page: Page,
  call: string,
  fields: Readonly<Record<string, FieldValue>>,
): string | undefined {
  if (page.next === undefined) return undefined;
  const { offset, column } = page.next;
  const more = column === undefined ? `${page.totalLines - offset + 1} more lines` : `line ${offset} goes on`;
  return `[${more}. Continue: ${call}${fieldList({ ...fields, offset, column })}]`;
}

/** What a header and a continuation with these fields can take at most, both line ends included. */
export function frameSize(kind: string, fields: Readonly<Record<string, FieldValue>>): number {
  return 2 * fieldList(fields).length + kind.length + 160;
}

/** Puts an answer together: header first, body, notes last; a body without a line end at its end gets one before the notes. */
export function frame(header: string, body: string, notes: readonly (string | undefined)[] = []): string {
  const present = notes.filter((note) => note !== undefined);
  const text = body === '' ? header : `${header}\n${body}`;
  if (present.length === 0) return text;
  return `${text}${text.endsWith('\n') ? '' : '\n'}${present.join('\n')}`;
}

/** The limits less what a frame takes. */
export function remaining(limits: OutputLimits, chars: number, lines = 2): OutputLimits {
  return { chars: Math.max(64, limits.chars - chars), lines: Math.max(1, limits.lines - lines) };
}

/** How many lines a text has; an end of line at its end begins no further one. */
export function linesIn(text: string): number {
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++;
  return text.endsWith('\n') ? lines - 1 : lines;
}

/** The promise of the limits, kept whatever came before: an answer that is too long loses its middle. */
export function withinLimits(text: string, limits: OutputLimits): string {
  // No text has more lines than characters.
  if (text.length <= limits.chars && (text.length <= limits.lines || linesIn(text) <= limits.lines)) return text;
  const end = firstUnits(text.slice(text.lastIndexOf('\n') + 1), Math.min(1_000, Math.floor(limits.chars / 3)));
  const lines = text.split('\n', Math.max(1, limits.lines - 2));
  const start = firstUnits(lines.join('\n'), Math.max(1, limits.chars - end.length - 40));
  return firstUnits(`${start}\n[... cut at the output limit ...]\n${end}`, limits.chars);
}

/** Whose ids are shown, and how. */
interface Shown {
  readonly session: ContextSession;
  readonly shortIds: boolean;
}

/** An id as the agent is shown it: full, or the shortest prefix that is unique in its session (decision D6). For the fields of a header, which are quoted there. */
export function shownId(id: ObjectId, { session, shortIds: short }: Shown): string {
  return short ? shortId(id, session.state.sets.index) : id;
}

/** The same id as it stands in a line of its own: quoted where it could forge one (decision E3). */
export const lineId = (id: ObjectId, shown: Shown): string => headerValue(shownId(id, shown));

/** A name or path in a listing: as it is, or JSON-quoted where it could forge a line or hide something (decision E3). Spaces alone are left. */
export function shownName(name: string): string {
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|^\s|\s$|^"/u.test(name)
    ? JSON.stringify(name).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped)
    : name;
}

/** A name JSON-quoted in ASCII alone. */
export const escapedName = (name: string): string => JSON.stringify(name).replace(/[^\x20-\x7e]/g, escaped);

function escaped(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('');
}

import { type NameOf, namesOf } from '../assembly/metadata.js';
import { isBare, renderedValue } from '../assembly/rendered-value.js';
import type { ObjectId } from '../objects/ids.js';
import { shortId } from '../session/object-reference.js';
import { firstUnits } from '../values/surrogate-pairs.js';
import type { OutputLimits, Page } from './page.js';
import type { ToolSession } from './tool.js';

type FieldValue = string | number | undefined;

/**
 * Formats the value of a header's field as contexts do (decision E3). It is quoted if a bracket
 * could end the header.
 */
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

/** Formats the header of an answer: `[file id=… path=… lines=1-20/20 chars=345]`. */
export function headerLine(kind: string, fields: Readonly<Record<string, FieldValue>>): string {
  return `[${kind}${fieldList(fields)}]`;
}

/** Formats the lines of a page: `1-20/20`, or `0` for an empty text. */
export function lineRange(page: Page): string {
  return page.totalLines === 0 ? '0' : `${page.firstLine}-${page.lastLine}/${page.totalLines}`;
}

/**
 * Formats the last line of a page if more text follows. It says how much follows and which call
 * shows it.
 */
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

/**
 * Returns the maximum size of a header and a continuation with these fields. Their line ends are
 * included.
 */
export function frameSize(kind: string, fields: Readonly<Record<string, FieldValue>>): number {
  return 2 * fieldList(fields).length + kind.length + 160;
}

/**
 * Joins the parts of an answer: header, body and notes. Adds a line end before the notes if there
 * is none.
 */
export function frame(header: string, body: string, notes: readonly (string | undefined)[] = []): string {
  const present = notes.filter((note) => note !== undefined);
  const text = body === '' ? header : `${header}\n${body}`;
  if (present.length === 0) return text;
  return `${text}${text.endsWith('\n') ? '' : '\n'}${present.join('\n')}`;
}

/** Returns the limits for the text inside a frame of the given size. */
export function remaining(limits: OutputLimits, chars: number, lines = 2): OutputLimits {
  return { chars: Math.max(64, limits.chars - chars), lines: Math.max(1, limits.lines - lines) };
}

/** Counts the lines of a text. No line follows a final line end. */
export function linesIn(text: string): number {
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++;
  return text.endsWith('\n') ? lines - 1 : lines;
}

/** Cuts out the middle of an answer that exceeds the limits. */
export function withinLimits(text: string, limits: OutputLimits): string {
  // A text has at most as many lines as characters.
  if (text.length <= limits.chars && (text.length <= limits.lines || linesIn(text) <= limits.lines)) return text;
  const end = firstUnits(text.slice(text.lastIndexOf('\n') + 1), Math.min(1_000, Math.floor(limits.chars / 3)));
  const lines = text.split('\n', Math.max(1, limits.lines - 2));
  const start = firstUnits(lines.join('\n'), Math.max(1, limits.chars - end.length - 40));
  return firstUnits(`${start}\n[... cut at the output limit ...]\n${end}`, limits.chars);
}

/** The session that ids belong to, and how they are shown. */
interface Shown {
  readonly session: ToolSession;
  readonly shortIds: boolean;
}

/**
 * Returns whether an id is a hash. Ids of calls often begin alike, so a shortened one could become
 * ambiguous with a later call.
 */
const isHash = (id: ObjectId): boolean => /^[0-9a-f]{64}$/.test(id);

/**
 * Formats an id for a header field, which adds quotes if needed. A file's id may be shortened to
 * the shortest prefix that is unique in the session (decision D6).
 */
export function shownId(id: ObjectId, { session, shortIds: short }: Shown): string {
  return short && isHash(id) ? shortId(id, session.state.sets.index) : id;
}

/** Returns the function that names a session's objects in lists for the agent. */
export function shownNames({ session, shortIds: short }: Shown): NameOf {
  const { index } = session.state.sets;
  const [whole, names] = [namesOf(index, false), namesOf(index, short)];
  return (id) => (isHash(id) ? names(id) : whole(id));
}

/** Formats an id for a line of text. It is quoted if it could imitate a line (decision E3). */
export const lineId = (id: ObjectId, shown: Shown): string => headerValue(shownId(id, shown));

/**
 * Formats a name or path for a listing. It is quoted as JSON if it could imitate a line or hide
 * something (decision E3). Spaces alone need no quotes.
 */
export function shownName(name: string): string {
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|^\s|\s$|^"/u.test(name)
    ? JSON.stringify(name).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped)
    : name;
}

/** Formats a name as JSON that has only ASCII characters. */
export const escapedName = (name: string): string => JSON.stringify(name).replace(/[^\x20-\x7e]/g, escaped);

function escaped(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('');
}

import { findText } from '../foreign-tools/text-edits.js';
import { findAcrossEnds, inEndsOf, type Place, wholeEnd } from './line-ends.js';
import { ToolError } from './tool.js';

/** A replacement. `oldText` must occur exactly once in the original text. */
export interface Edit {
  readonly oldText: string;
  readonly newText: string;
}

/**
 * A text after its edits, and the lines that each edit now has. Edits are in the order of the text.
 */
export interface EditedText {
  readonly text: string;
  readonly changed: readonly { readonly firstLine: number; readonly lastLine: number }[];
}

interface Replacement {
  readonly index: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Returns the number of line endings before a position. */
function lineEnds(text: string, before = text.length): number {
  let count = 0;
  for (let at = 0; at < before; at++) if (text.charCodeAt(at) === 10) count++;
  return count;
}

/**
 * Maximum length of lines that are compared without white space. The comparison only gives a hint.
 */
const LONGEST_COMPARED = 10_000;

function squeezed(line: string): string {
  return line.length > LONGEST_COMPARED ? '' : line.replace(/\s+/g, ' ').trim();
}

/**
 * Returns the first line that is accepted, with its number from 1. Undefined if there is none.
 * Holds one line in memory at a time.
 */
function findLine(
  text: string,
  accept: (line: string) => boolean,
): { readonly number: number; readonly line: string } | undefined {
  for (let from = 0, number = 1; from <= text.length; number++) {
    const end = text.indexOf('\n', from);
    const line = text.slice(from, end < 0 ? text.length : end);
    if (accept(line)) return { number, line };
    if (end < 0) return undefined;
    from = end + 1;
  }
  return undefined;
}

/**
 * Returns a hint if a line differs from the wanted text only in white space. This is the most
 * frequent mistake of models.
 */
function almost(text: string, wanted: string): string | undefined {
  const first = findLine(wanted, (line) => line.length > 3 && squeezed(line).length > 3);
  if (first === undefined) return undefined;
  const bare = squeezed(first.line);
  const like = findLine(text, (line) => line.length >= bare.length && squeezed(line) === bare);
  return like && `line ${like.number} differs only in white space`;
}

/** The text to edit, the path of its file, and the current edit's name in errors. */
interface Target {
  readonly text: string;
  readonly path: string;
  readonly name: string;
}

/** The places where a text first occurs, and the number of all its occurrences. */
interface Places {
  readonly places: readonly Place[];
  readonly count: number;
}

function find(text: string, wanted: string): Places {
  const { text: stands, places, count } = findText(text, wanted, { overlapping: true });
  if (count === 0 && wanted.includes('\n')) return findAcrossEnds(text, wanted);
  return { places: places.map((at) => ({ start: wholeEnd(text, at), end: at + stands.length })), count };
}

function notFound({ name, path, text }: Target, wanted: string): ToolError {
  const near = almost(text, wanted);
  return new ToolError(
    'no-match',
    `${name}: the text was not found in ${path}${near === undefined ? '' : ` (${near})`}. Nothing was changed.`,
    { next: `Read the lines first and give oldText exactly as shown, white space included: read path=${path}` },
  );
}

function several({ name, path, text }: Target, { places, count }: Places): ToolError {
  const lines = places.map(({ start }) => lineEnds(text, start) + 1);
  return new ToolError(
    'ambiguous',
    `${name}: the text occurs ${count} times in ${path} (lines ` +
      `${lines.join(', ')}${count > places.length ? ', ...' : ''}). Nothing was changed.`,
    { next: 'Make oldText longer until it occurs only once, or give one edit for each place.' },
  );
}

function locate(edit: Edit, index: number, target: Target): Replacement {
  const { text, name } = target;
  if (edit.oldText === '') {
    throw new ToolError('invalid-arguments', `${name} is empty. Nothing was changed.`, {
      next: 'Give the text to replace; write creates a new file.',
    });
  }
  const found = find(text, edit.oldText);
  const [place] = found.places;
  if (place === undefined) throw notFound(target, edit.oldText);
  if (found.count > 1) throw several(target, found);
  return { index, ...place, text: inEndsOf(text, place, edit.newText) };
}

/**
 * Maximum of text length times number of edits in one call. A longer search would block all other
 * calls.
 */
const MOST_SEARCHED = 256 * 1024 * 1024;

function requireBounded(text: string, edits: readonly Edit[], path: string): void {
  const atOnce = Math.max(1, Math.floor(MOST_SEARCHED / Math.max(1, text.length)));
  if (edits.length <= atOnce) return;
  throw new ToolError(
    'invalid-arguments',
    `${edits.length} edits are too many at once for ${path}, which has ${text.length} characters: edits times ` +
      `characters may be ${MOST_SEARCHED} in one call. Nothing was changed.`,
    { next: `Give at most ${atOnce} ${atOnce === 1 ? 'edit' : 'edits'} for this file in one call.` },
  );
}

/**
 * Applies all edits to a text, or none. Each edit is searched in the original text. Line endings
 * and a byte order mark are kept, even in a text with both kinds of line endings. Each edit takes
 * linear time, and text length times number of edits is limited.
 *
 * @throws {ToolError} `no-match`, `ambiguous`, `invalid-arguments`, `nothing-done` – edits do not
 *   match, overlap, change nothing, or are too many for the text's length
 */
export function applyEdits(original: string, edits: readonly Edit[], path: string): EditedText {
  const nameOf = (index: number): string => (edits.length === 1 ? 'oldText' : `edits[${index}].oldText`);
  requireBounded(original, edits, path);
  const replacements = edits
    .map((edit, index) => locate(edit, index, { text: original, path, name: nameOf(index) }))
    .sort((a, b) => a.start - b.start);
  const pieces: string[] = [];
  let position = 0;
  let line = 1;
  const changed: { firstLine: number; lastLine: number }[] = [];
  for (const [order, replacement] of replacements.entries()) {
    const before = replacements[order - 1];
    if (before !== undefined && replacement.start < before.end) {
      throw new ToolError(
        'invalid-arguments',
        `edits[${before.index}] and edits[${replacement.index}] overlap in ${path}. Nothing was changed.`,
        { next: 'Join them into one edit.' },
      );
    }
    const kept = original.slice(position, replacement.start);
    line += lineEnds(kept);
    const firstLine = line;
    line += lineEnds(replacement.text);
    changed.push({ firstLine, lastLine: Math.max(firstLine, replacement.text.endsWith('\n') ? line - 1 : line) });
    pieces.push(kept, replacement.text);
    position = replacement.end;
  }
  const text = [...pieces, original.slice(position)].join('');
  if (text === original) {
    throw new ToolError('nothing-done', `the edits would not change ${path}. Nothing was changed.`, {
      next: 'Give a newText that differs from oldText.',
    });
  }
  return { text, changed };
}

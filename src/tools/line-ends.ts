import { occurrences, toCrlf, toLf } from '../foreign-tools/text-edits.js';

/** A range in a text. `end` is the position after its last character. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

/** Moves a position that is inside a Windows line end to its start. */
export const wholeEnd = (text: string, at: number): number => (at > 0 && text.startsWith('\r\n', at - 1) ? at - 1 : at);

/** Maximum number of occurrences that an error lists. */
const KEPT_PLACES = 5;

/**
 * Returns a function that converts positions in `toLf(text)` to positions in `text`. It must be
 * called with rising positions.
 */
function positionsIn(text: string): (bare: number) => number {
  let removed = 0;
  let next = text.indexOf('\r\n');
  return (bare) => {
    while (next >= 0 && next - removed < bare) {
      removed += 1;
      next = text.indexOf('\r\n', next + 2);
    }
    return bare + removed;
  };
}

/**
 * Finds a non-empty text in another text, in linear time. Any line end matches any other, because
 * an agent does not see which kind a file has. Returns the first occurrences and the number of all.
 */
export function findAcrossEnds(
  text: string,
  wanted: string,
): { readonly places: readonly Place[]; readonly count: number } {
  const bare = toLf(wanted);
  const starts: number[] = [];
  let count = 0;
  for (const at of occurrences(toLf(text), bare, { overlapping: true })) {
    if (count < KEPT_PLACES) starts.push(at);
    count += 1;
  }
  const [startOf, endOf] = [positionsIn(text), positionsIn(text)];
  return { places: starts.map((at) => ({ start: startOf(at), end: endOf(at + bare.length) })), count };
}

const LONE_LF = /(?:^|[^\r])\n/;

/** Returns whether a text has line endings and all are Windows line endings. */
const hasOnlyCrlf = (text: string): boolean => text.includes('\r\n') && !LONE_LF.test(text);

/**
 * Returns the line end that follows a range. If the range's last line has none, returns the
 * previous line's.
 */
function lineEndAt(text: string, { start, end }: Place): '\n' | '\r\n' {
  const next = text.indexOf('\n', end);
  const at = next >= 0 || start === 0 ? next : text.lastIndexOf('\n', start - 1);
  return text[at - 1] === '\r' ? '\r\n' : '\n';
}

/** Splits a text into lines and line endings. The last line has no line ending. */
function linesAndEnds(text: string): { readonly lines: readonly string[]; readonly ends: readonly string[] } {
  const pieces = text.split(/(\r?\n)/);
  return { lines: pieces.filter((_, i) => i % 2 === 0), ends: pieces.filter((_, i) => i % 2 === 1) };
}

/** Gives unchanged lines their old line endings. New lines get those of the lines they replace. */
function lineByLine(old: string, text: string, otherwise: string): string {
  const [before, after] = [linesAndEnds(old), linesAndEnds(text)];
  const [had, has] = [before.ends.length, after.ends.length];
  let last = 0;
  while (last < Math.min(had, has) && before.lines[had - 1 - last] === after.lines[has - 1 - last]) last += 1;
  const endOf = (i: number): string =>
    before.ends[i >= has - last ? i + had - has : Math.min(i, had - last - 1)] ?? otherwise;
  return after.lines.map((line, i) => (i < has ? `${line}${endOf(i)}` : line)).join('');
}

/**
 * Converts the line endings of a replacement to those at its place. If these are mixed, each line
 * keeps its own.
 */
export function inEndsOf(text: string, place: Place, put: string): string {
  const old = text.slice(place.start, place.end);
  const hasCrlf = old.includes('\r\n');
  const hasLf = LONE_LF.test(old);
  const lineEnd = lineEndAt(text, place);
  if (hasCrlf && hasLf) return lineByLine(old, put, lineEnd);
  return hasCrlf || (!hasLf && lineEnd === '\r\n') ? toCrlf(put) : put;
}

/** Byte order mark at the start of a text. */
const MARK = '\ufeff';

/**
 * Converts a text that replaces a whole file. It gets the file's line endings and byte order mark,
 * which the agent does not see. A text that has Windows line endings keeps them.
 */
export function inFormOf(old: string, text: string): string {
  const ended = hasOnlyCrlf(old) && !text.includes('\r\n') ? toCrlf(text) : text;
  return old.startsWith(MARK) && !text.startsWith(MARK) ? `${MARK}${ended}` : ended;
}

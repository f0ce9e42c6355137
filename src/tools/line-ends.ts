import { occurrences, toCrlf, toLf } from '../foreign-tools/text-edits.js';

/** A place in a text: where it begins, and the position behind its end. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

/** A position that lies inside a Windows line end is moved before it: nobody means half a line end. */
export const wholeEnd = (text: string, at: number): number => (at > 0 && text.startsWith('\r\n', at - 1) ? at - 1 : at);

/** Places that stand for all others in an error. */
const KEPT_PLACES = 5;

/** The position in `text` of one in the same text with `\n` for every `\r\n`. Positions must rise from call to call. */
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
 * Finds a text, not empty, in another one, where a line end of either kind matches one of either kind: an agent does not see which a file has.
 * Gives the first places and the number of all. Takes time linear in both texts.
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

/** Whether a text has line ends, and all of them are Windows ones. */
export const hasOnlyCrlf = (text: string): boolean => text.includes('\r\n') && !LONE_LF.test(text);

/** The end of the line in which a place ends; of a last line that has none, the end of the line before. */
function lineEndAt(text: string, { start, end }: Place): '\n' | '\r\n' {
  const next = text.indexOf('\n', end);
  const at = next >= 0 || start === 0 ? next : text.lastIndexOf('\n', start - 1);
  return text[at - 1] === '\r' ? '\r\n' : '\n';
}

/** The lines of a text without their ends, and the ends: the last line has none. */
function linesAndEnds(text: string): { readonly lines: readonly string[]; readonly ends: readonly string[] } {
  const pieces = text.split(/(\r?\n)/);
  return { lines: pieces.filter((_, i) => i % 2 === 0), ends: pieces.filter((_, i) => i % 2 === 1) };
}

/** Gives lines that stay their own ends, and new ones the end of the line whose place they take. */
function lineByLine(old: string, text: string, otherwise: string): string {
  const [before, after] = [linesAndEnds(old), linesAndEnds(text)];
  const [had, has] = [before.ends.length, after.ends.length];
  let last = 0;
  while (last < Math.min(had, has) && before.lines[had - 1 - last] === after.lines[has - 1 - last]) last += 1;
  const endOf = (i: number): string =>
    before.ends[i >= has - last ? i + had - has : Math.min(i, had - last - 1)] ?? otherwise;
  return after.lines.map((line, i) => (i < has ? `${line}${endOf(i)}` : line)).join('');
}

/** What takes a place in a text, with the line ends that stand there; where those are mixed, each line keeps its own. */
export function inEndsOf(text: string, place: Place, put: string): string {
  const old = text.slice(place.start, place.end);
  const hasCrlf = old.includes('\r\n');
  const hasLf = LONE_LF.test(old);
  const lineEnd = lineEndAt(text, place);
  if (hasCrlf && hasLf) return lineByLine(old, put, lineEnd);
  return hasCrlf || (!hasLf && lineEnd === '\r\n') ? toCrlf(put) : put;
}

/** A byte order mark at the beginning of a text. */
const MARK = '\ufeff';

/** A text that takes the place of a whole one, with the line ends and byte order mark of that, which the agent does not see. One with Windows line ends of its own keeps its ends. */
export function inFormOf(old: string, text: string): string {
  const ended = hasOnlyCrlf(old) && !text.includes('\r\n') ? toCrlf(text) : text;
  return old.startsWith(MARK) && !text.startsWith(MARK) ? `${MARK}${ended}` : ended;
}

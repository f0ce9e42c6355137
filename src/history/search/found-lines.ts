/** A range of a text in UTF-16 units. */
export interface TextRange {
  readonly at: number;
  readonly end: number;
}

/** One line with a match. */
export interface FoundLine {
  /** Line number, from 1. */
  readonly line: number;
  /** The line, or its part around the match. */
  readonly excerpt: string;
  /** The matches in the excerpt. */
  readonly marks: readonly TextRange[];
  /** The lines before it. Absent if no surrounding lines were requested. */
  readonly before?: readonly string[];
  readonly after?: readonly string[];
}

/** The matches in a text. */
export interface FoundText {
  /** Total number of matches. */
  readonly count: number;
  /** The lines of the first matches. */
  readonly lines: readonly FoundLine[];
}

const MOST_LINES = 5;
const AROUND = 80;
/** Maximum UTF-16 units that are shown of a line before or after a match. */
const LONGEST_LINE = 240;

/**
 * Yields the places of a text in another text. The case of letters matters only if the wanted text
 * has a capital letter.
 */
export function* rangesOf(text: string, wanted: string): Generator<TextRange> {
  const anyCase = wanted === wanted.toLowerCase();
  // Falls back to exact case if lower case changes the length, because that would shift the
  // offsets.
  const lowered = anyCase ? text.toLowerCase() : text;
  const searched = lowered.length === text.length ? lowered : text;
  for (let at = searched.indexOf(wanted); at >= 0; at = searched.indexOf(wanted, at + wanted.length))
    yield { at, end: at + wanted.length };
}

/** Returns at most `most` lines before `at`, which is the beginning of a line. */
function linesBefore(text: string, at: number, most: number): readonly string[] {
  const lines: string[] = [];
  for (let end = at - 1; lines.length < most && end >= 0; ) {
    const start = end === 0 ? 0 : text.lastIndexOf('\n', end - 1) + 1;
    lines.unshift(text.slice(start, Math.min(end, start + LONGEST_LINE)).toWellFormed());
    end = start - 1;
  }
  return lines;
}

/** Returns at most `most` lines after the line end at `at`. */
function linesAfter(text: string, at: number, most: number): readonly string[] {
  const lines: string[] = [];
  for (let start = at + 1; lines.length < most && start < text.length; ) {
    const found = text.indexOf('\n', start);
    const end = found < 0 ? text.length : found;
    lines.push(text.slice(start, Math.min(end, start + LONGEST_LINE)).toWellFormed());
    start = end + 1;
  }
  return lines;
}

/** Returns the lines of some matches, with `around` lines before and after each. */
export function linesOf(text: string, matches: Iterable<TextRange>, around = 0): FoundText {
  const lines: (FoundLine & { readonly marks: TextRange[] })[] = [];
  let [count, line, counted, shownFrom, shownTo] = [0, 1, 0, 0, 0];
  for (const { at, end } of matches) {
    count += 1;
    const last = lines.at(-1);
    if (last !== undefined && at < shownTo)
      last.marks.push({ at: at - shownFrom, end: Math.min(end, shownTo) - shownFrom });
    if (lines.length >= MOST_LINES) continue;
    for (let next = text.indexOf('\n', counted); next >= 0 && next < at; next = text.indexOf('\n', next + 1)) {
      line += 1;
      counted = next + 1;
    }
    const lineStart = at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1;
    const found = text.indexOf('\n', end);
    const lineEnd = found < 0 ? text.length : found;
    if (lines.at(-1)?.line === line) continue;
    [shownFrom, shownTo] = [Math.max(lineStart, at - AROUND), Math.min(lineEnd, end + AROUND)];
    const excerpt = text.slice(shownFrom, shownTo).toWellFormed();
    const marks = [{ at: at - shownFrom, end: Math.min(end, shownTo) - shownFrom }];
    const near =
      around === 0 ? {} : { before: linesBefore(text, lineStart, around), after: linesAfter(text, lineEnd, around) };
    lines.push({ line, excerpt, marks, ...near });
  }
  return { count, lines };
}

/**
 * Finds the places of a text in another text. The case of letters matters only if the wanted text
 * has a capital letter.
 */
export const linesWith = (text: string, wanted: string): FoundText => linesOf(text, rangesOf(text, wanted));

import type { Change as DiffPart } from 'diff';
import type { MarkedPart } from './shown-text.js';

/** Number of equal lines that are shown around a difference. */
const CONTEXT = 3;
/** Maximum length of lines that are compared word by word. */
const MOST_WORDED = 600;

/** A line of a difference. */
export interface DiffRow {
  readonly sign: '+' | '-' | ' ';
  readonly text: string;
  readonly old?: number;
  readonly new?: number;
  /** The words that differ from the replaced line, or from the line that replaces this one. */
  readonly marks?: readonly MarkedPart[];
}

type WordDiff = (a: string, b: string) => readonly DiffPart[];

/** Returns the differing words of two lines. Returns none if the lines have little in common. */
function markedWords(before: string, after: string, words: WordDiff): readonly [MarkedPart[], MarkedPart[]] {
  const [old, fresh]: [MarkedPart[], MarkedPart[]] = [[], []];
  if (before.length > MOST_WORDED || after.length > MOST_WORDED) return [old, fresh];
  let [a, b, same] = [0, 0, 0];
  for (const { value, added, removed } of words(before, after)) {
    if (removed) old.push({ from: a, to: a + value.length });
    else if (added) fresh.push({ from: b, to: b + value.length });
    else same += value.trim().length;
    if (!added) a += value.length;
    if (!removed) b += value.length;
  }
  return same * 3 < Math.min(before.length, after.length) ? [[], []] : [old, fresh];
}

/** Marks the words of removed lines and of the lines that replace them. */
export function markedRows(rows: readonly DiffRow[], words: WordDiff): readonly DiffRow[] {
  const found = [...rows];
  for (let i = 0; i < found.length; ) {
    let middle = i;
    while (found[middle]?.sign === '-') middle += 1;
    let end = middle;
    while (found[end]?.sign === '+') end += 1;
    for (let n = 0; n < Math.min(middle - i, end - middle); n += 1) {
      const [old, fresh] = [found[i + n] as DiffRow, found[middle + n] as DiffRow];
      const [before, after] = markedWords(old.text, fresh.text, words);
      found[i + n] = { ...old, marks: before };
      found[middle + n] = { ...fresh, marks: after };
    }
    i = Math.max(end, i + 1);
  }
  return found;
}

/**
 * Returns the rows of a difference. Marks the words in which a removed line and its replacement
 * differ.
 */
export function diffRows(parts: readonly DiffPart[], words: WordDiff): readonly DiffRow[] {
  let [old, fresh] = [1, 1];
  const rows = parts.flatMap(({ value, added, removed }): readonly DiffRow[] =>
    (value.endsWith('\n') ? value.slice(0, -1) : value).split('\n').map((text) => {
      if (added) return { sign: '+', text, new: fresh++ };
      if (removed) return { sign: '-', text, old: old++ };
      return { sign: ' ', text, old: old++, new: fresh++ };
    }),
  );
  return markedRows(rows, words);
}

/** A row of a difference, or a fold of equal lines. */
export type Folded = DiffRow | { readonly fold: number; readonly count: number };

/** Folds equal lines far from a difference, except those whose first row is in `opened`. */
export function foldedRows(rows: readonly DiffRow[], opened: ReadonlySet<number>): readonly Folded[] {
  const found: Folded[] = [];
  for (let i = 0; i < rows.length; ) {
    let end = i;
    while (end < rows.length && rows[end]?.sign === ' ') end += 1;
    if (end === i) {
      found.push(rows[i++] as DiffRow);
      continue;
    }
    const from = i === 0 ? i : i + CONTEXT;
    const to = end === rows.length ? end : end - CONTEXT;
    const isFolded = to - from > 2 && !opened.has(i);
    found.push(...rows.slice(i, isFolded ? from : end));
    if (isFolded) found.push({ fold: i, count: to - from }, ...rows.slice(to, end));
    i = end;
  }
  return found;
}

/** A hunk of a unified difference. Each line begins with a space, `-` or `+`. */
export interface Hunk {
  readonly old_start: number;
  readonly new_start: number;
  readonly lines: readonly string[];
}

/**
 * Returns the rows of a unified difference. A hunk whose `new_start` is 0 has no line numbers. A
 * row with dots separates it from the previous hunk.
 */
export function hunkRows(hunks: readonly Hunk[]): readonly DiffRow[] {
  return hunks.flatMap((hunk, i): readonly DiffRow[] => {
    if (hunk.new_start === 0)
      return (i === 0 ? hunk.lines : [' ⋯', ...hunk.lines]).map((line) => ({
        sign: line[0] as DiffRow['sign'],
        text: line.slice(1),
      }));
    let [old, fresh] = [hunk.old_start, hunk.new_start];
    return hunk.lines.flatMap((line): readonly DiffRow[] => {
      const [sign, text] = [line[0], line.slice(1)];
      if (sign === '+') return [{ sign, text, new: fresh++ }];
      if (sign === '-') return [{ sign, text, old: old++ }];
      return sign === ' ' ? [{ sign, text, old: old++, new: fresh++ }] : [];
    });
  });
}

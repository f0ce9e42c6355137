import { structuredPatch } from 'diff';
import { ownMember } from '../../values/own-member.js';

/** A line of a difference. */
export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed' | 'note';
  readonly text: string;
}

/** Consecutive lines around a difference. */
export interface DiffHunk {
  readonly oldStart: number;
  readonly oldLines: number;
  readonly newStart: number;
  readonly newLines: number;
  readonly lines: readonly DiffLine[];
}

/** The difference of two texts. */
export interface TextDiff {
  readonly equal: boolean;
  readonly added: number;
  readonly removed: number;
  /**
   * The hunks. Undefined if the texts differ too much for the limits; then only the line counts are
   * known.
   */
  readonly hunks: readonly DiffHunk[] | undefined;
}

/** Time limit in milliseconds. Comparing takes time in the product of length and difference. */
const LIMIT_MS = 2_000;
const KINDS: Readonly<Record<string, DiffLine['kind']>> = { ' ': 'same', '+': 'added', '-': 'removed', '\\': 'note' };

const lineCount = (text: string): number => (text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0));

/** Compares two texts by lines, with `context` lines around each difference. */
export function diffTexts(before: string, after: string, context = 3): TextDiff {
  if (before === after) return { equal: true, added: 0, removed: 0, hunks: [] };
  const patch = structuredPatch('a', 'b', before, after, '', '', { context, timeout: LIMIT_MS });
  if (patch === undefined)
    return { equal: false, added: lineCount(after), removed: lineCount(before), hunks: undefined };
  const hunks = patch.hunks.map(({ oldStart, oldLines, newStart, newLines, lines }) => ({
    oldStart,
    oldLines,
    newStart,
    newLines,
    lines: lines.map((line) => ({ kind: ownMember(KINDS, line[0] ?? ' ') ?? 'same', text: line.slice(1) })),
  }));
  const all = hunks.flatMap(({ lines }) => lines);
  const count = (kind: DiffLine['kind']): number => all.filter((line) => line.kind === kind).length;
  return { equal: false, added: count('added'), removed: count('removed'), hunks };
}

const SIGNS: Readonly<Record<DiffLine['kind'], string>> = { same: ' ', added: '+', removed: '-', note: '\\' };

/**
 * Formats the position of one side of a hunk. A side without lines has the number of the line
 * before it.
 */
const place = (start: number, lines: number): string => `${lines === 0 ? start - 1 : start},${lines}`;

/** Formats a difference in unified form without the two header lines. Empty for equal texts. */
export function unifiedLines({ hunks, added, removed }: TextDiff): readonly string[] {
  if (hunks === undefined) return [`@@ too different to be compared line by line: ${removed} lines became ${added} @@`];
  return hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
    `@@ -${place(oldStart, oldLines)} +${place(newStart, newLines)} @@`,
    ...lines.map(({ kind, text }) => `${SIGNS[kind]}${text}`),
  ]);
}

import type { Json } from '../objects/canonical-json.js';

/** The mark that replaces a hidden text. */
export const MASK = '[redacted]';

/**
 * Hides secrets and other texts. The same input always gives the same output, and masking twice
 * changes nothing.
 */
export interface ValueMask {
  /** Returns a text with every hidden part replaced by the mark. */
  masked(text: string): string;
  /**
   * Returns a JSON value of any depth with every hidden text, number and field name replaced by the
   * mark.
   */
  maskedValue(value: Json): Json;
}

/**
 * Sizes of masked texts are rounded up to a multiple of this, because an exact size would reveal
 * the length of the hidden text.
 */
const SIZE_STEP = 100;

/** Rounds up the size of a masked text. */
export function roundedSize(size: number): number {
  return Math.ceil(size / SIZE_STEP) * SIZE_STEP;
}

/**
 * Removes texts from a text and returns the pieces between them, to be joined with the mark. Pass
 * longer texts first, so that a shorter text does not leave a part of a longer one.
 */
export function piecesWithout(text: string, hidden: Iterable<string>): readonly string[] {
  let between: readonly string[] = [text];
  for (const one of hidden) if (text.includes(one)) between = between.flatMap((part) => part.split(one));
  return between;
}

/** A hidden range of a text. */
export interface HiddenRange {
  readonly from: number;
  readonly end: number;
}

/** Patterns of quotes and spaces that masking may add around a hidden value. */
const ADDED_BEFORE = /(?:\\*["']| )$/;
const ADDED_AFTER = /^\\*["']/;

function placeOf(text: string, piece: string, { from, isLast }: { readonly from: number; readonly isLast: boolean }) {
  const forms = [piece, piece.replace(ADDED_BEFORE, '')];
  for (const form of [...forms, ...forms.map((one) => one.replace(ADDED_AFTER, ''))]) {
    const last = text.length - form.length;
    const at = isLast ? (last >= from && text.endsWith(form) ? last : -1) : text.indexOf(form, from);
    if (at >= 0) return { at, end: at + form.length };
  }
  return undefined;
}

/**
 * Returns the ranges of a text that its masked form replaces by the mark. Undefined if the two
 * texts differ in any other way.
 */
export function hiddenRanges(text: string, masked: string): readonly HiddenRange[] | undefined {
  const pieces = masked.split(MASK);
  const first = [pieces[0] ?? '', (pieces[0] ?? '').replace(ADDED_BEFORE, '')].find((one) => text.startsWith(one));
  if (first === undefined) return undefined;
  const ranges: HiddenRange[] = [];
  let from = first.length;
  for (const [i, piece] of pieces.entries()) {
    if (i === 0) continue;
    const found = placeOf(text, piece, { from, isLast: i === pieces.length - 1 });
    if (found === undefined) return undefined;
    if (found.at > from) ranges.push({ from, end: found.at });
    from = found.end;
  }
  return ranges;
}

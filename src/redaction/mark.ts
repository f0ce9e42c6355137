import type { Json } from '../objects/canonical-json.js';

/** The mark that replaces a hidden text. */
export const MASK = '[redacted]';

/**
 * Hides secrets and other texts. The same input always gives the same output, and masking twice
 * changes nothing.
 */
export interface ValueMask {
  /** A text with every hidden part replaced by the mark. */
  masked(text: string): string;
  /**
   * A JSON value, nested to any depth, with every hidden text, number and field name replaced by
   * the mark.
   */
  maskedValue(value: Json): Json;
}

/**
 * Sizes of masked texts are rounded up to this step, because an exact size would give away the
 * length of the hidden text.
 */
const SIZE_STEP = 100;

/** A size that does not give away the length of a hidden text. */
export function roundedSize(size: number): number {
  return Math.ceil(size / SIZE_STEP) * SIZE_STEP;
}

/**
 * The pieces of a text between the given texts. Pass the longest first, so that no part of one is
 * left by another; join the pieces with the mark.
 */
export function piecesWithout(text: string, hidden: Iterable<string>): readonly string[] {
  let between: readonly string[] = [text];
  for (const one of hidden) if (text.includes(one)) between = between.flatMap((part) => part.split(one));
  return between;
}

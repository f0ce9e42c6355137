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
 * Sizes of masked texts are rounded up to this step, because an exact size would give away the
 * length of the hidden text.
 */
const SIZE_STEP = 100;

/** Rounds the size of a hidden text up, so that it does not reveal the length. */
export function roundedSize(size: number): number {
  return Math.ceil(size / SIZE_STEP) * SIZE_STEP;
}

/**
 * Returns the pieces of a text between the given texts. Pass the longest first, so that no part of
 * one remains after another. Join the pieces with the mark.
 */
export function piecesWithout(text: string, hidden: Iterable<string>): readonly string[] {
  let between: readonly string[] = [text];
  for (const one of hidden) if (text.includes(one)) between = between.flatMap((part) => part.split(one));
  return between;
}

/**
 * Average characters per token, an estimate. The laboratory compares it with the counts of
 * providers.
 */
export const CHARS_PER_TOKEN = 3.6;

/** Returns the estimated tokens of a number of characters, not rounded. */
export const tokensOf = (chars: number): number => chars / CHARS_PER_TOKEN;

/** Characters of a token, on average: an estimate that the laboratory compares with what providers counted. */
export const CHARS_PER_TOKEN = 3.6;

/** Estimated tokens of a number of characters, not rounded. */
export const tokensOf = (chars: number): number => chars / CHARS_PER_TOKEN;

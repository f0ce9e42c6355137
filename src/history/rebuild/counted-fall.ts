/** Minimum meaningful fall of a provider's count, in tokens. Rounding causes smaller ones. */
export const LEAST_COUNTED = 1_024;

/** The kinds of history events that explain a shorter request. */
export const SHORTENING: ReadonlySet<string> = new Set(['compacted', 'shortened', 'diverged']);

/** Returns how many tokens fewer the provider counted for a prompt than for the previous prompt. */
export const fallOf = (before: number, prompt: number): number =>
  before - prompt < LEAST_COUNTED ? 0 : before - prompt;

/** Smaller differences between two counts of a provider come from its rounding, in tokens. */
export const LEAST_COUNTED = 1_024;

/** The kinds of history events that explain a shorter request. */
export const SHORTENING: ReadonlySet<string> = new Set(['compacted', 'shortened', 'diverged']);

/** Returns how many fewer tokens the provider counted for a prompt than for the one before. */
export const fallOf = (before: number, prompt: number): number =>
  before - prompt < LEAST_COUNTED ? 0 : before - prompt;

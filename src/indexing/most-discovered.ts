/** Files that one call discovers at most; what is left is named in its answer (decision C7). */
export const MOST_DISCOVERED = 2_000;

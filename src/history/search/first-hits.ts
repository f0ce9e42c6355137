import type { SearchAnswer } from './search.js';

/** The most texts that are put into the order of their appearance. */
export const MOST_HITS = 300;

const LISTED = 100;

/** Returns the earliest texts of a search, the first appearance first. */
export function firstHits({ hits, isCut, ...answer }: SearchAnswer, limit = LISTED): SearchAnswer {
  const ordered = [...hits].sort(
    (a, b) => a.at.getTime() - b.at.getTime() || (a.step ?? 0) - (b.step ?? 0) || (a.txId ?? 0) - (b.txId ?? 0),
  );
  return { ...answer, hits: ordered.slice(0, limit), isCut: isCut || ordered.length > limit };
}

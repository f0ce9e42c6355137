/** One occurrence of a text. */
export interface FoundLine {
  /** Line number, from 1. */
  readonly line: number;
  /** The line, or its part around the text. */
  readonly excerpt: string;
}

/** The occurrences of one text in another. */
export interface FoundText {
  /** Total number of occurrences. */
  readonly count: number;
  /** The first occurrences. */
  readonly lines: readonly FoundLine[];
}

const MOST_LINES = 5;
const AROUND = 80;

/**
 * Finds the occurrences of a text in another one. The case of letters matters only if the searched
 * text has a capital.
 */
export function linesWith(text: string, wanted: string): FoundText {
  const anyCase = wanted === wanted.toLowerCase();
  // Some letters are longer in lower case, which would shift the offsets.
  const lowered = anyCase ? text.toLowerCase() : text;
  const searched = lowered.length === text.length ? lowered : text;
  const lines: FoundLine[] = [];
  let [count, line, counted] = [0, 1, 0];
  for (let at = searched.indexOf(wanted); at >= 0; at = searched.indexOf(wanted, at + wanted.length)) {
    count += 1;
    if (lines.length >= MOST_LINES) continue;
    for (let end = text.indexOf('\n', counted); end >= 0 && end < at; end = text.indexOf('\n', end + 1)) {
      line += 1;
      counted = end + 1;
    }
    const start = Math.max(text.lastIndexOf('\n', at - 1) + 1, at - AROUND);
    const stop = text.indexOf('\n', at + wanted.length);
    const excerpt = text.slice(
      at === 0 ? 0 : start,
      Math.min(stop < 0 ? text.length : stop, at + wanted.length + AROUND),
    );
    if (lines.at(-1)?.line !== line) lines.push({ line, excerpt: excerpt.toWellFormed() });
  }
  return { count, lines };
}

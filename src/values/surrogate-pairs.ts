/** Returns whether a cut before `index` would split a surrogate pair. */
export function splitsPair(text: string, index: number): boolean {
  if (index <= 0 || index >= text.length) return false;
  return (text.charCodeAt(index - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(index) & 0xfc00) === 0xdc00;
}

/**
 * Returns at most `units` UTF-16 units from the beginning of a text; one less if the cut would
 * split a surrogate pair.
 */
export const firstUnits = (text: string, units: number): string =>
  text.slice(0, splitsPair(text, units) ? units - 1 : units);

/**
 * Returns at most `units` UTF-16 units from the end of a text; one less if the cut would split a
 * surrogate pair.
 */
export function lastUnits(text: string, units: number): string {
  const from = Math.max(0, text.length - units);
  return text.slice(splitsPair(text, from) ? from + 1 : from);
}

/**
 * Returns the length of the longest common prefix, by bisection. `isSame` compares one range and is
 * called only if everything before it is equal.
 */
function longestSame(most: number, isSame: (from: number, to: number) => boolean): number {
  // Usually everything is equal.
  if (isSame(0, most)) return most;
  let [same, differs] = [0, most - 1];
  while (same < differs) {
    const middle = Math.ceil((same + differs) / 2);
    if (isSame(same, middle)) same = middle;
    else differs = middle - 1;
  }
  return same;
}

/** A place in a text, in UTF-16 units. */
export interface Place {
  readonly text: string;
  readonly at: number;
}

/** Returns the number of equal UTF-16 units that follow two places. */
export function commonLengthFrom({ text: a, at: i }: Place, { text: b, at: j }: Place): number {
  // Comparing two slices takes a quarter of the time of `startsWith`.
  return longestSame(
    Math.min(a.length - i, b.length - j),
    (from, to) => a.slice(i + from, i + to) === b.slice(j + from, j + to),
  );
}

/** Returns the length of the common prefix of two texts, in UTF-16 units. */
export const commonLength = (a: string, b: string): number => commonLengthFrom({ text: a, at: 0 }, { text: b, at: 0 });

/** Returns the length of the common suffix of two texts, in UTF-16 units, at most `most`. */
export function commonEnd(a: string, b: string, most = Math.min(a.length, b.length)): number {
  const [i, j] = [a.length, b.length];
  return longestSame(most, (from, to) => a.slice(i - to, i - from) === b.slice(j - to, j - from));
}

/** Returns the length of the common prefix of two byte arrays. */
export function commonBytes(a: Uint8Array, b: Uint8Array): number {
  return longestSame(
    Math.min(a.length, b.length),
    (from, to) => Buffer.compare(a.subarray(from, to), b.subarray(from, to)) === 0,
  );
}

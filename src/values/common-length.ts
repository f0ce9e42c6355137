/** The longest beginning that is the same, where `isSame` tells of a stretch whether it is, and everything before it is: halving needs few comparisons. */
function longestSame(most: number, isSame: (from: number, to: number) => boolean): number {
  // Mostly it is all of it.
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

/** How many UTF-16 units are the same from two places on. */
export function commonLengthFrom({ text: a, at: i }: Place, { text: b, at: j }: Place): number {
  // Two stretches are compared for being equal: a quarter of the time of `startsWith`.
  return longestSame(Math.min(a.length - i, b.length - j), (from, to) => a.slice(i + from, i + to) === b.slice(j + from, j + to));
}

/** How many UTF-16 units two texts have in common from their beginning. */
export const commonLength = (a: string, b: string): number => commonLengthFrom({ text: a, at: 0 }, { text: b, at: 0 });

/** How many UTF-16 units two texts have in common at their end, at most so many. */
export function commonEnd(a: string, b: string, most = Math.min(a.length, b.length)): number {
  const [i, j] = [a.length, b.length];
  return longestSame(most, (from, to) => a.slice(i - to, i - from) === b.slice(j - to, j - from));
}

/** How many bytes two pieces have in common from their beginning. */
export function commonBytes(a: Uint8Array, b: Uint8Array): number {
  return longestSame(Math.min(a.length, b.length), (from, to) => Buffer.compare(a.subarray(from, to), b.subarray(from, to)) === 0);
}

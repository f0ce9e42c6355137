/** The longest beginning that is the same, where `isSame` tells of a stretch whether it is, and everything before it is: halving needs few comparisons. */
function longestSame(most: number, isSame: (from: number, to: number) => boolean): number {
  let [same, differs] = [0, most];
  while (same < differs) {
    const middle = Math.ceil((same + differs) / 2);
    if (isSame(same, middle)) same = middle;
    else differs = middle - 1;
  }
  return same;
}

/** How many UTF-16 units two texts have in common from their beginning. */
export function commonLength(a: string, b: string): number {
  if (b.startsWith(a)) return a.length;
  return longestSame(Math.min(a.length, b.length), (from, to) => a.startsWith(b.slice(from, to), from));
}

/** How many bytes two pieces have in common from their beginning. */
export function commonBytes(a: Uint8Array, b: Uint8Array): number {
  return longestSame(Math.min(a.length, b.length), (from, to) => Buffer.compare(a.subarray(from, to), b.subarray(from, to)) === 0);
}

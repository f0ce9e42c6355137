/** How many UTF-16 units two texts have in common from their beginning. */
export function commonLength(a: string, b: string): number {
  if (b.startsWith(a)) return a.length;
  // Halving finds the first difference with few comparisons of long texts.
  let [same, differs] = [0, Math.min(a.length, b.length)];
  while (same < differs) {
    const middle = Math.ceil((same + differs) / 2);
    if (a.startsWith(b.slice(same, middle), same)) same = middle;
    else differs = middle - 1;
  }
  return same;
}

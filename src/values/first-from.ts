/**
 * Returns the index of the first item whose place is `at` or later, by binary search. Items must be
 * sorted by place. If all places are earlier, returns the number of items.
 */
export function firstFrom<T>(things: readonly T[], at: number, placeOf: (thing: T) => number): number {
  let [low, high] = [0, things.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (placeOf(things[middle] as T) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

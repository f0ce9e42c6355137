/**
 * Returns the index of the first item, in sorted order, whose place is not before `at`; the number
 * of items if there is none.
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

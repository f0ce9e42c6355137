/** The first of some things, in the order of their places, that does not stand in front of one; their count where all of them do. */
export function firstFrom<T>(things: readonly T[], at: number, placeOf: (thing: T) => number): number {
  let [low, high] = [0, things.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (placeOf(things[middle] as T) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
